-- What machines agree on: who may carry out which attempt, and until when. The journal is elsewhere, and is the truth;
-- all of this can be made again from it.
--
-- A task is one attempt. It is waiting, leased, or ended, and it ends once: reported, lost, withdrawn, never carried
-- out. What ended is kept, so that a driver which comes late cannot make it wait again.
--
-- The fence is the row in `lease`, by worker and epoch, not the time: a result counts until somebody has ended the
-- lease. Times are this database's. No clock of another machine is ever compared.
--
-- Locks are taken in one order: pool, task, lease. Only `claim` adds to what a pool has under way, and it holds the pool.

-- `instance`: which tables these are. Where they were lost and made again, attempts of before are not offered again.
CREATE TABLE edition (number integer NOT NULL, instance text NOT NULL DEFAULT gen_random_uuid()::text);
INSERT INTO edition VALUES (1);

CREATE TABLE pool (
    name text PRIMARY KEY,
    cap integer NOT NULL DEFAULT 16 CHECK (cap >= 0),
    lease_seconds double precision NOT NULL DEFAULT 120 CHECK (lease_seconds >= 10)
);

CREATE TABLE worker (
    id text PRIMARY KEY,
    login text NOT NULL,
    pool text NOT NULL REFERENCES pool,
    slots integer NOT NULL CHECK (slots > 0),
    labels text[] NOT NULL,
    protocol integer NOT NULL,
    software text NOT NULL,
    host text NOT NULL,
    draining boolean NOT NULL DEFAULT false,
    began timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen timestamptz NOT NULL DEFAULT clock_timestamp(),
    gone boolean NOT NULL DEFAULT false
);

CREATE TABLE content (
    sha256 text PRIMARY KEY,
    body bytea NOT NULL,
    kept timestamptz NOT NULL DEFAULT clock_timestamp()
);
ALTER TABLE content ALTER COLUMN body SET STORAGE EXTERNAL; -- it is compressed already

CREATE TABLE task (
    id text PRIMARY KEY,
    project text NOT NULL,
    run text NOT NULL,
    attempt text NOT NULL,
    pool text NOT NULL REFERENCES pool,
    priority integer NOT NULL DEFAULT 0,
    labels text[] NOT NULL DEFAULT '{}', -- a worker needs all of them
    protocol integer NOT NULL,
    spec text NOT NULL,
    contents text[] NOT NULL,
    state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'leased', 'ended')),
    outcome text CHECK (outcome IN ('reported', 'lost', 'withdrawn', 'unwanted')),
    epoch integer NOT NULL DEFAULT 0,
    given_back integer NOT NULL DEFAULT 0,
    why text NOT NULL DEFAULT '',
    cancelled boolean NOT NULL DEFAULT false,
    recorded boolean NOT NULL DEFAULT false, -- the journal has its end
    made timestamptz NOT NULL DEFAULT clock_timestamp(),
    not_before timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK ((state = 'ended') = (outcome IS NOT NULL))
);
CREATE INDEX task_waiting ON task (pool, priority DESC, made) WHERE state = 'waiting';
CREATE INDEX task_open ON task (project, run) WHERE NOT recorded;

CREATE TABLE lease (
    task text PRIMARY KEY REFERENCES task ON DELETE CASCADE,
    pool text NOT NULL,
    worker text NOT NULL REFERENCES worker,
    epoch integer NOT NULL,
    seconds double precision NOT NULL,
    began timestamptz NOT NULL DEFAULT clock_timestamp(),
    until timestamptz NOT NULL
);
CREATE INDEX lease_pool ON lease (pool);

CREATE TABLE report (
    task text PRIMARY KEY REFERENCES task ON DELETE CASCADE,
    worker text NOT NULL,
    epoch integer NOT NULL,
    body text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE late (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task text NOT NULL,
    worker text NOT NULL,
    login text NOT NULL,
    epoch integer NOT NULL,
    body text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE driver (
    project text NOT NULL,
    run text NOT NULL,
    holder text NOT NULL,
    place text NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (project, run)
);

-- For scalers and for people: what a pool has to do.
CREATE VIEW waiting AS
SELECT p.name AS pool, p.cap,
       (SELECT count(*) FROM task t WHERE t.pool = p.name AND t.state = 'waiting') AS queued,
       (SELECT count(*) FROM lease l WHERE l.pool = p.name) AS running
FROM pool p;

-- A worker acts under its own login. An owner or an administrator is not let through, either: they have their own rights.
CREATE FUNCTION is_worker(who text) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM worker w WHERE w.id = who AND w.login = session_user) THEN
        RAISE insufficient_privilege USING MESSAGE = format('%s is no worker of the login %s', who, session_user);
    END IF;
END $$;

CREATE FUNCTION register(
    who text, into_pool text, of_slots integer, with_labels text[], of_protocol integer, of_software text, on_host text
) RETURNS double precision LANGUAGE plpgsql AS $$
DECLARE given double precision;
BEGIN
    SELECT lease_seconds INTO given FROM pool WHERE name = into_pool;
    IF given IS NULL THEN
        RAISE no_data_found USING MESSAGE = format('there is no pool %s', into_pool);
    END IF;
    INSERT INTO worker (id, login, pool, slots, labels, protocol, software, host)
    VALUES (who, session_user, into_pool, of_slots, with_labels, of_protocol, of_software, on_host)
    ON CONFLICT (id) DO UPDATE SET
        pool = excluded.pool, slots = excluded.slots, labels = excluded.labels, protocol = excluded.protocol,
        software = excluded.software, host = excluded.host, draining = false, gone = false,
        began = clock_timestamp(), seen = clock_timestamp()
    WHERE worker.login = session_user;
    PERFORM is_worker(who);
    RETURN given;
END $$;

-- What waits and this worker could take, the most urgent first.
CREATE FUNCTION ready(who text, at_most integer) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM is_worker(who);
    UPDATE worker SET seen = clock_timestamp() WHERE id = who;
    RETURN QUERY
        SELECT t.id FROM task t JOIN worker w ON w.id = who AND t.pool = w.pool
        WHERE t.state = 'waiting' AND NOT t.cancelled AND NOT w.draining AND t.not_before <= clock_timestamp()
          AND t.labels <@ w.labels AND t.protocol = w.protocol
        ORDER BY t.priority DESC, t.made LIMIT at_most;
END $$;

-- Answers: claimed, yours, held, full, gone, unfit (labels), version, draining.
CREATE FUNCTION claim(
    who text, of_task text, OUT answer text, OUT of_epoch integer, OUT for_seconds double precision, OUT its_spec text
) LANGUAGE plpgsql AS $$
DECLARE
    w worker;
    p pool;
    t task;
    l lease;
BEGIN
    PERFORM is_worker(who);
    SELECT * INTO w FROM worker WHERE id = who;
    SELECT * INTO p FROM pool WHERE name = w.pool FOR UPDATE;
    SELECT * INTO t FROM task WHERE id = of_task FOR UPDATE;
    IF t.id IS NULL OR t.state = 'ended' OR t.pool <> w.pool THEN answer := 'gone'; RETURN; END IF;
    SELECT * INTO l FROM lease WHERE task = of_task;
    IF l.task IS NOT NULL THEN
        answer := CASE WHEN l.worker = who THEN 'yours' ELSE 'held' END;
        IF l.worker = who THEN of_epoch := l.epoch; for_seconds := l.seconds; its_spec := t.spec; END IF;
        RETURN;
    END IF;
    answer := CASE
        WHEN t.cancelled THEN 'gone'
        WHEN t.protocol <> w.protocol THEN 'version'
        WHEN NOT t.labels <@ w.labels THEN 'unfit'
        WHEN w.draining THEN 'draining'
        WHEN (SELECT count(*) FROM lease WHERE pool = p.name) >= p.cap THEN 'full'
        WHEN (SELECT count(*) FROM lease WHERE worker = who) >= w.slots THEN 'full'
        ELSE 'claimed' END;
    IF answer <> 'claimed' THEN RETURN; END IF;
    UPDATE task SET state = 'leased', epoch = epoch + 1 WHERE id = of_task RETURNING epoch INTO of_epoch;
    INSERT INTO lease (task, pool, worker, epoch, seconds, until)
    VALUES (of_task, p.name, who, of_epoch, p.lease_seconds, clock_timestamp() + make_interval(secs => p.lease_seconds));
    for_seconds := p.lease_seconds;
    its_spec := t.spec;
END $$;

-- Names what it renews: a beat for "all of mine" would renew a lease that the worker does not know it has.
-- Answers, one for each: on, cancel, over.
CREATE FUNCTION beat(who text, tasks text[], epochs integer[])
RETURNS TABLE (of_task text, answer text) LANGUAGE plpgsql AS $$
DECLARE number integer;
BEGIN
    PERFORM is_worker(who);
    UPDATE worker SET seen = clock_timestamp() WHERE id = who;
    FOR number IN SELECT n FROM generate_subscripts(tasks, 1) n ORDER BY tasks[n] LOOP -- as `expire` goes through them
        of_task := tasks[number];
        UPDATE lease l SET until = clock_timestamp() + make_interval(secs => l.seconds)
        WHERE l.task = of_task AND l.worker = who AND l.epoch = epochs[number];
        IF NOT FOUND THEN
            answer := 'over';
        ELSE
            SELECT CASE WHEN t.cancelled THEN 'cancel' ELSE 'on' END INTO answer FROM task t WHERE t.id = of_task;
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;

-- Leases of this worker, as it may have forgotten one: it died between the answer of `claim` and its own note of it.
CREATE FUNCTION held(who text) RETURNS TABLE (of_task text, of_epoch integer) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM is_worker(who);
    RETURN QUERY SELECT l.task, l.epoch FROM lease l WHERE l.worker = who;
END $$;

CREATE FUNCTION content_of(who text, of_task text, at_epoch integer, wanted text) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE text_kept bytea;
BEGIN
    PERFORM is_worker(who);
    SELECT c.body INTO text_kept FROM content c
        JOIN task t ON t.id = of_task AND wanted = ANY (t.contents)
        JOIN lease l ON l.task = t.id AND l.worker = who AND l.epoch = at_epoch
        WHERE c.sha256 = wanted;
    IF text_kept IS NULL THEN
        RAISE insufficient_privilege USING MESSAGE = format('no lease of %s lists %s', who, wanted);
    END IF;
    RETURN text_kept;
END $$;

-- Answers: accepted; repeated, where it was accepted before; late, where the lease had been ended: then it is kept, and
-- changes nothing.
CREATE FUNCTION report(who text, of_task text, at_epoch integer, its_body text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM is_worker(who);
    PERFORM FROM task WHERE id = of_task FOR UPDATE;
    DELETE FROM lease l WHERE l.task = of_task AND l.worker = who AND l.epoch = at_epoch;
    IF FOUND THEN
        INSERT INTO report (task, worker, epoch, body) VALUES (of_task, who, at_epoch, its_body);
        UPDATE task SET state = 'ended', outcome = 'reported' WHERE id = of_task;
        PERFORM pg_notify('tenuto_driver', of_task);
        RETURN 'accepted';
    END IF;
    IF EXISTS (SELECT FROM report r WHERE r.task = of_task AND r.worker = who AND r.epoch = at_epoch
               AND r.body = its_body) THEN
        RETURN 'repeated';
    END IF;
    INSERT INTO late (task, worker, login, epoch, body) VALUES (of_task, who, session_user, at_epoch, its_body);
    RETURN 'late';
END $$;

-- It was never started. Answers: accepted, late. Who can carry it out is tried a few times, and then it is unwanted.
CREATE FUNCTION give_back(who text, of_task text, at_epoch integer, reason text, pause double precision)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE times integer;
BEGIN
    PERFORM is_worker(who);
    PERFORM FROM task WHERE id = of_task FOR UPDATE;
    DELETE FROM lease l WHERE l.task = of_task AND l.worker = who AND l.epoch = at_epoch;
    IF NOT FOUND THEN RETURN 'late'; END IF;
    UPDATE task SET given_back = given_back + (reason <> '')::integer, why = reason WHERE id = of_task
        RETURNING given_back INTO times;
    IF times >= 5 THEN
        UPDATE task SET state = 'ended', outcome = 'unwanted' WHERE id = of_task;
        PERFORM pg_notify('tenuto_driver', of_task);
    ELSIF (SELECT cancelled FROM task WHERE id = of_task) THEN
        UPDATE task SET state = 'ended', outcome = 'withdrawn' WHERE id = of_task;
        PERFORM pg_notify('tenuto_driver', of_task);
    ELSE
        UPDATE task SET state = 'waiting', not_before = clock_timestamp() + make_interval(secs => pause)
            WHERE id = of_task;
    END IF;
    RETURN 'accepted';
END $$;

-- A worker that will take nothing more; with `for_good`, one that ends.
CREATE FUNCTION leave(who text, for_good boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM is_worker(who);
    UPDATE worker SET draining = true, gone = for_good, seen = clock_timestamp() WHERE id = who;
END $$;

-- For drivers ----------------------------------------------------------------------------------------------------

-- Ends leases that nobody renewed. `sight`: for how long this driver has seen the database without a gap; one that
-- could not see it cannot know whether the workers could. A server that has only just started does not know, either.
CREATE FUNCTION expire(of_project text, sight double precision) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE over text;
BEGIN
    FOR over IN
        SELECT t.id FROM task t JOIN lease l ON l.task = t.id
        WHERE t.project = of_project AND l.until < clock_timestamp() AND l.seconds <= sight
          AND pg_postmaster_start_time() + make_interval(secs => l.seconds) < clock_timestamp()
        ORDER BY t.id FOR UPDATE OF t SKIP LOCKED
    LOOP
        -- Looked at again: it may have been renewed while this waited for nothing but its turn.
        DELETE FROM lease l WHERE l.task = over AND l.until < clock_timestamp();
        CONTINUE WHEN NOT FOUND;
        UPDATE task SET state = 'ended', outcome = 'lost' WHERE id = over;
        RETURN NEXT over;
    END LOOP;
END $$;

-- A task is offered; one that is there already, or was, stays as it is.
CREATE FUNCTION offer(
    of_id text, of_project text, of_run text, of_attempt text, in_pool text, of_priority integer, needs text[],
    of_protocol integer, its_spec text, its_contents text[]
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO task (id, project, run, attempt, pool, priority, labels, protocol, spec, contents)
    VALUES (of_id, of_project, of_run, of_attempt, in_pool, of_priority, needs, of_protocol, its_spec, its_contents)
    ON CONFLICT (id) DO NOTHING;
    IF FOUND THEN PERFORM pg_notify('tenuto_worker', in_pool); END IF;
    RETURN FOUND;
END $$;

-- What waits is withdrawn at once; what is under way is asked to end, and its worker reports that.
CREATE FUNCTION cancel(of_task text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE task SET cancelled = true WHERE id = of_task AND state <> 'ended';
    UPDATE task SET state = 'ended', outcome = 'withdrawn' WHERE id = of_task AND state = 'waiting';
END $$;

-- One driver for a run at a time, which is for order, not for safety: every turn decides from the journal. Who drives
-- now; the caller, where nobody did, where the other's time is over, or where the other was in the same place: a lock
-- of that place lets in one at a time, so it has ended.
CREATE FUNCTION drive(of_project text, of_run text, who text, at_place text, seconds double precision)
RETURNS TABLE (holder text, place text) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO driver VALUES (of_project, of_run, who, at_place, clock_timestamp() + make_interval(secs => seconds))
    ON CONFLICT ON CONSTRAINT driver_pkey DO UPDATE
        SET holder = excluded.holder, place = excluded.place, until = excluded.until
        WHERE driver.holder = excluded.holder OR driver.place = excluded.place OR driver.until < clock_timestamp();
    RETURN QUERY SELECT d.holder, d.place FROM driver d WHERE d.project = of_project AND d.run = of_run;
END $$;

CREATE FUNCTION let_go(of_project text, of_run text, who text) RETURNS void LANGUAGE sql AS $$
    UPDATE driver SET until = clock_timestamp() WHERE project = of_project AND run = of_run AND holder = who;
$$;
