"""Who may run where and how much: resource groups, what a project may use of them, and shares.

Decisions only. Who may do what to the platform is `core.access`; which step goes where is
`core.placement`, which stays within what is said here.
"""
