-- Which actions make sense now.
local actions = {}
local at = obj.spec
at = (at or {}).updateStrategy
at = (at or {}).rollingUpdate
local paused = (at or {}).paused == true
actions["pause"] = {disabled = paused}
actions["resume"] = {disabled = not paused}
actions["restart"] = {}
return actions
