"""The Grafana dashboards as code: one module for each dashboard, helpers beside them.

`python -m source` in the folder above writes `grafana/*.json`; see `make dashboards`.
"""
