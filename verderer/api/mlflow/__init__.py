"""The tracking API that MLflow's own clients speak, at `/mlflow` and `/mlflow/{project}`.

Belongs here: its addresses, its JSON and its errors. What is allowed and what it means are use
cases' business (`usecases.tracking`). Compatible with clients of MLflow 2 and 3.
"""
