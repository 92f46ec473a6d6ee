"""`verderer up`: every process of one machine, started in order, kept alive, stopped in order.

`supervisor` knows processes and no product; `plan` knows which processes the product has.
"""
