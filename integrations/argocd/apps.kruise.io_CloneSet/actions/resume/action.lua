-- Goes on. v1alpha1 has the field beside type, v1beta1 below rollingUpdate.
obj.spec.updateStrategy = obj.spec.updateStrategy or {}
local at = obj.spec.updateStrategy
if obj.apiVersion ~= "apps.kruise.io/v1alpha1" then
  at.rollingUpdate = at.rollingUpdate or {}
  at = at.rollingUpdate
end
at.paused = false
return obj
