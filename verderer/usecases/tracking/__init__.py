"""What clients of the tracking API do: experiments, runs, samples, models, artifacts.

Every use case is told who asks and within which project (`caller.Caller`); what is not the
caller's to know about does not exist for it.
"""
