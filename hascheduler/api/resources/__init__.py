"""Definitions, lanes, tenants, tokens and the audit log: resources that are written as a whole under their names."""
