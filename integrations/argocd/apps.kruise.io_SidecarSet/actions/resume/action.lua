-- Goes on.
obj.spec.updateStrategy = obj.spec.updateStrategy or {}
obj.spec.updateStrategy.paused = false
return obj
