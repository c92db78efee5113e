-- Pauses.
obj.spec.strategy = obj.spec.strategy or {}
obj.spec.strategy.paused = true
return obj
