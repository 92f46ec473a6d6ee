"""Lives beside a cluster: fetches orders, drives drivers, ships logs, reports facts.

Knows no database; everything it knows comes over the wire or from its driver.
"""
