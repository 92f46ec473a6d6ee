"""What must hold of the rows at every instant: each query finds what breaks it."""

from __future__ import annotations

LIVE = "('assigned', 'starting', 'running', 'stopping')"
BROKEN = {
    "two live attempts of one step": f"""
        SELECT step_id FROM attempts WHERE state IN {LIVE} GROUP BY 1 HAVING count(*) > 1""",
    "a step is active without a live attempt, or the reverse": f"""
        SELECT s.id FROM steps s
         WHERE (s.state = 'active') <> EXISTS (
               SELECT 1 FROM attempts a WHERE a.step_id = s.id AND a.state IN {LIVE})""",
    "what is reserved is not what runs": f"""
        SELECT c.resource FROM capacity c
         WHERE reserved <> coalesce((
               SELECT sum((h.requests->>c.resource)::bigint * h.nodes)
                 FROM attempts a JOIN steps s ON s.id = a.step_id JOIN shapes h ON h.id = s.shape_id
                WHERE a.cluster_id = c.cluster_id AND a.state IN {LIVE}), 0)""",
    "the ledger is not what runs": f"""
        SELECT l.resource FROM ledger l
         WHERE reserved <> coalesce((
               SELECT sum((h.requests->>l.resource)::bigint * h.nodes)
                 FROM attempts a JOIN steps s ON s.id = a.step_id JOIN shapes h ON h.id = s.shape_id
                 JOIN runs r ON r.id = s.run_id
                WHERE a.resource_group_id = l.resource_group_id AND a.state IN {LIVE}
                  AND l.project_id IN (0, r.project_id)), 0)""",
    "something runs outside its resource group": f"""
        SELECT a.step_id FROM attempts a JOIN resource_groups g ON g.id = a.resource_group_id
         WHERE NOT g.every_cluster AND a.state IN {LIVE} AND NOT EXISTS (
               SELECT FROM resource_group_clusters c
                WHERE c.resource_group_id = g.id AND c.cluster_id = a.cluster_id)""",
    "a run's open steps are miscounted": """
        SELECT r.id FROM runs r WHERE open <> (
               SELECT count(*) FROM steps s WHERE s.run_id = r.id
                  AND s.state IN ('blocked', 'ready', 'active'))""",
    "the counters of runs do not add up": """
        SELECT state FROM (SELECT state, sum(n) AS n FROM run_counters GROUP BY 1) c
          FULL JOIN (SELECT state, count(*) AS n FROM runs GROUP BY 1) r USING (state)
         WHERE coalesce(c.n, 0) <> coalesce(r.n, 0)""",
    "the queue is not the ready steps": """
        SELECT step_id FROM queue q FULL JOIN (SELECT id FROM steps WHERE state = 'ready') s
            ON s.id = q.step_id WHERE s.id IS NULL OR q.step_id IS NULL""",
    "a blocked step waits for a wrong number of others": """
        SELECT s.id FROM steps s WHERE s.state = 'blocked' AND s.waits <> (
               SELECT count(*) FROM needs n JOIN steps p ON p.id = n.step_id
                WHERE n.successor_id = s.id AND p.state IN ('blocked', 'ready', 'active'))""",
    "an attempt began while one that it follows lived": """
        SELECT a.step_id FROM attempts a JOIN attempts b
            ON b.step_id = a.step_id AND b.number = a.number + 1
         WHERE a.ended_at IS NULL""",
    "an end has no audit row, or two": """
        SELECT a.step_id FROM attempts a JOIN steps s ON s.id = a.step_id
         WHERE a.ended_at IS NOT NULL AND 1 <> (
               SELECT count(*) FROM audit u
                WHERE u.run_id = s.run_id AND u.step_idx = s.idx AND u.attempt = a.number
                  AND u.action = 'attempt.' || a.state)""",
    "a run is over without an audit row that says how": """
        SELECT r.id FROM runs r WHERE r.open = 0 AND NOT EXISTS (
               SELECT 1 FROM audit u
                WHERE u.run_id = r.id AND u.action = 'run.' || r.state)""",
    "a run was not audited when it was submitted": """
        SELECT r.id FROM runs r WHERE 1 <> (
               SELECT count(*) FROM audit u
                WHERE u.run_id = r.id AND u.action = 'run.submitted')""",
    "an attempt was not audited when it was made": """
        SELECT a.step_id FROM attempts a JOIN steps s ON s.id = a.step_id
         WHERE 1 <> (
               SELECT count(*) FROM audit u
                WHERE u.run_id = s.run_id AND u.step_idx = s.idx AND u.attempt = a.number
                  AND u.action = 'attempt.assigned')""",
}
