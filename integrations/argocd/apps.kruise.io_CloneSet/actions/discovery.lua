-- Which actions make sense now.
local actions = {}
local at = obj.spec.updateStrategy or {}
if obj.apiVersion ~= "apps.kruise.io/v1alpha1" then at = at.rollingUpdate or {} end
local paused = at.paused == true
actions["pause"] = {disabled = paused}
actions["resume"] = {disabled = not paused}
actions["restart"] = {}
return actions
