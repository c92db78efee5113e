-- Goes on.
obj.spec.updateStrategy = obj.spec.updateStrategy or {}
obj.spec.updateStrategy.rollingUpdate = obj.spec.updateStrategy.rollingUpdate or {}
obj.spec.updateStrategy.rollingUpdate.paused = false
return obj
