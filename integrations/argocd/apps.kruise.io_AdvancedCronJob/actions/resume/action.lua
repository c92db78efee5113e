-- Goes on.
obj.spec.paused = false
return obj
