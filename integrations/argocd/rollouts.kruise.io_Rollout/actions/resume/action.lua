-- Goes on.
obj.spec.strategy = obj.spec.strategy or {}
obj.spec.strategy.paused = false
return obj
