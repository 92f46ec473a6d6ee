// A tracking client prints …/mlflow/#/experiments/ID/runs/UID; what stands behind # never reaches the server.
"use strict";

const named = /\/runs\/([0-9a-f]{32})/.exec(location.hash);
location.replace(named ? `/tracked/${named[1]}` : "/runs");
