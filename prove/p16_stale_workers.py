"""Promise 16: a worker whose lease was ended cannot change anything any more.

Real tables on a private PostgreSQL. Attempts are claimed, given back, claimed again, lost and reported as the dice
fall; then everybody who ever held something says it again: with the epoch that they had, with guessed ones, replayed
word for word, from other workers and other logins, also beside a worker that holds the attempt now. What counts
afterwards is compared with what the last holder said.
"""

from __future__ import annotations

import random
from urllib.parse import urlsplit

from prove.frame import Amount, Lacking, Progress, Result, dice, silent
from tenuto.cluster.board import DriverBoard, Held, Offer, WorkerBoard
from tenuto.cluster.database import SCHEMA, WORKERS, Line, allow, connect, install
from tenuto.cluster.private_postgres import PrivatePostgres
from tenuto.errors import NotFound, TenutoError

UNFENCED = f"""
SET search_path = {SCHEMA};
CREATE OR REPLACE FUNCTION report(who text, of_task text, at_epoch integer, its_body text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {SCHEMA}, pg_temp AS $$
BEGIN
    DELETE FROM lease l WHERE l.task = of_task;
    INSERT INTO report (task, worker, epoch, body) VALUES (of_task, who, at_epoch, its_body)
        ON CONFLICT (task) DO UPDATE SET body = excluded.body;
    UPDATE task SET state = 'ended', outcome = 'reported' WHERE id = of_task;
    RETURN 'accepted';
END $$;
"""
_OTHERS = 3
Word = tuple[WorkerBoard, Held]


def prove(amount: Amount, tell: Progress) -> Result:
    return _try(1_500 if amount.full else 12, tell)


def control(amount: Amount) -> Result:
    """Reports without a fence."""
    return _try(3, silent, UNFENCED)


def _try(attempts: int, tell: Progress, broken: str = "") -> Result:
    try:
        server = PrivatePostgres.start(settings={"fsync": "off"})
    except NotFound as absent:
        raise Lacking(absent.message) from None
    with server:
        address = server.url()
        install(address)
        _say(address, f"UPDATE {SCHEMA}.pool SET cap = 1000000")
        if broken:
            _say(address, broken)
        arena = Arena(address, dice("stale workers", attempts, bool(broken)))
        try:
            for number in range(attempts):
                arena.play(f"t{number}")
                tell(number + 1, attempts)
        finally:
            arena.close()
    figures = {"reports": f"{arena.tried:,}", "accepted": str(len(arena.violations)), "attempts": f"{attempts:,}"}
    return Result(arena.tried, arena.violations, figures)


class Arena:
    def __init__(self, address: str, chance: random.Random) -> None:
        self.address = address
        self.chance = chance
        self.violations: list[str] = []
        self.tried = 0
        self.lines = [Line(address)]
        self.driver = DriverBoard(self.lines[0], "p")
        self.workers = [self._worker(f"w{number}", f"login{number}") for number in range(_OTHERS + 1)]
        # A stranger's login, which calls itself by the name of each worker.
        stranger = Line(self._as("stranger"))
        self.lines.append(stranger)
        self.strangers = [WorkerBoard(stranger, board.worker) for board in self.workers]

    def _as(self, login: str) -> str:
        allow(self.address, login, WORKERS)
        parts = urlsplit(self.address)
        return parts._replace(netloc=f"{login}@{parts.netloc.rpartition('@')[2]}").geturl()

    def _worker(self, name: str, login: str) -> WorkerBoard:
        board = WorkerBoard(Line(self._as(login)), name)
        self.lines.append(board.line)
        board.register("default", 1_000_000, [], "0", "here")
        return board

    def play(self, task: str) -> None:
        self.driver.offer(Offer(task, "p", task, task, "default", "{}", [], []))
        former: list[Word] = []
        holder = self.chance.choice(self.workers)
        for _ in range(self.chance.randrange(3)):  # claimed, and given back before it began
            held = Held(task, holder.claim(task).epoch)
            former.append((holder, held))
            holder.give_back(held)
            holder = self.chance.choice(self.workers)
        held = Held(task, holder.claim(task).epoch)
        self._attack(task, former, held, holder)  # while somebody else holds it
        expected = ""
        if self.chance.random() < 0.5:
            expected = f"the result of {holder.worker}"
            if holder.report(held, expected) != "accepted":
                self.violations.append(f"{task}: the holder's own result was not taken")
        else:
            _say(self.address, f"UPDATE {SCHEMA}.lease SET seconds = 0, until = '-infinity' WHERE task = '{task}'")
            self.driver.expire()
            former.append((holder, held))
        self._attack(task, former, held, None)  # after its end
        found = [end.body for end in self.driver.ended(task)]
        if found != [expected]:
            self.violations.append(f"{task}: it was to end with {expected!r}, and ended with {found}")

    def _attack(
        self, task: str, former: list[tuple[WorkerBoard, Held]], held: Held, holder: WorkerBoard | None
    ) -> None:
        said: list[tuple[WorkerBoard, Held]] = list(former)
        others = [board for board in self.workers if board is not holder]
        said += [(self.chance.choice(others), held) for _ in range(2)]
        guesses = [held.epoch + step for step in (-2, -1, 1, 2, self.chance.randrange(3, 1 << 20))]
        said += [(self.chance.choice(self.workers), Held(task, epoch)) for epoch in guesses]
        said += [(self.chance.choice(self.strangers), held) for _ in range(2)]
        self.chance.shuffle(said)
        for board, one in said:
            self._say_it(board, one)

    def _say_it(self, board: WorkerBoard, held: Held) -> None:
        self.tried += 1
        words = f"{held.task}, epoch {held.epoch}, by {board.worker}"
        try:
            match self.chance.randrange(3):
                case 0:
                    answer = board.report(held, f"stale {self.tried}")
                    if answer != "late":
                        self.violations.append(f"a stale report was {answer}: {words}")
                case 1:
                    if board.beat([held]) != {held.task: "over"}:
                        self.violations.append(f"a stale beat renewed a lease: {words}")
                case _:
                    board.give_back(held)  # whether it changed anything, the end shows
        except TenutoError as refused:
            if refused.code != "not-permitted":
                raise

    def close(self) -> None:
        for line in self.lines:
            line.close()


def _say(address: str, question: str) -> None:
    with connect(address) as connection:
        connection.execute(question.encode())
