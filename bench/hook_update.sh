#!/usr/bin/env bash
# The same update as a SubagentStop hook makes, the way a careful shell script does it: payload in, one lock,
# one jq, the new file flushed and renamed, its folder flushed. $1: the state file.
set -eu
payload=$(cat)
exec 9>"$1.lock"
flock 9
jq --argjson payload "$payload" '
  .currentFeature.phase = $payload.nextPhase
  | .currentFeature.updatedAt = $payload.timestamp
  | .phases[$payload.completedPhase] = "completed"
  | .phases[$payload.nextPhase] = "in_progress"' "$1" >"$1.new"
sync "$1.new"
mv "$1.new" "$1"
sync "${1%/*}"
