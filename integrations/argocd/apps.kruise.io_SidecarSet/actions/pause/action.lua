-- Pauses.
obj.spec.updateStrategy = obj.spec.updateStrategy or {}
obj.spec.updateStrategy.paused = true
return obj
