-- Teams: each project belongs to one group, and a role in the group counts in all of its projects.

CREATE TABLE project_groups (
    id         integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text NOT NULL CHECK (name ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
    title      text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX project_groups_name ON project_groups (name);
INSERT INTO project_groups (id, name) OVERRIDING SYSTEM VALUE VALUES (1, 'default');
SELECT setval(pg_get_serial_sequence('project_groups', 'id'), 1);

CREATE TABLE project_group_members (
    project_group_id integer NOT NULL REFERENCES project_groups ON DELETE CASCADE,
    user_id          integer NOT NULL REFERENCES users ON DELETE CASCADE,
    role             role NOT NULL,
    PRIMARY KEY (project_group_id, user_id)
);
CREATE INDEX project_group_members_user ON project_group_members (user_id);

ALTER TABLE projects ADD COLUMN group_id integer NOT NULL DEFAULT 1 REFERENCES project_groups;
CREATE INDEX projects_group ON projects (group_id);

-- What somebody may in a project, by their own role or that in its group, whichever is more.
CREATE VIEW project_roles AS
    SELECT project_id, user_id, max(role) AS role
      FROM (SELECT project_id, user_id, role FROM project_members
             UNION ALL
            SELECT p.id, m.user_id, m.role
              FROM project_group_members AS m JOIN projects AS p ON p.group_id = m.project_group_id
           ) AS every_role
     GROUP BY project_id, user_id;
