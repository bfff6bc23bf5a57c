#!/usr/bin/env bash
# The same update as a SubagentStop hook makes, the way a careful shell script does it: payload in, one lock,
# one jq, the new file flushed and renamed, its folder flushed. No program more than that takes. $1: the state file.
set -eu
exec 9>"$1.lock"
flock 9
jq --slurpfile payload /dev/stdin '
  $payload[0] as $payload
  | .currentFeature.phase = $payload.nextPhase
  | .currentFeature.updatedAt = $payload.timestamp
  | .phases[$payload.completedPhase] = "completed"
  | .phases[$payload.nextPhase] = "in_progress"' "$1" >"$1.new"
sync "$1.new"
mv "$1.new" "$1"
exec sync "${1%/*}"
