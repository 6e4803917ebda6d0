"""The rules of the steps that every request passes, a module each; `hascheduler.api.edge` runs them in their order."""
