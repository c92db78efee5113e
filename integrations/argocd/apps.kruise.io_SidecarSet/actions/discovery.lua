-- Which actions make sense now.
local actions = {}
local at = obj.spec
at = (at or {}).updateStrategy
local paused = (at or {}).paused == true
actions["pause"] = {disabled = paused}
actions["resume"] = {disabled = not paused}
return actions
