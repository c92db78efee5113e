-- Which actions make sense now.
local actions = {}
local at = obj.spec
at = (at or {}).strategy
local paused = (at or {}).paused == true
actions["pause"] = {disabled = paused}
actions["resume"] = {disabled = not paused}
local status = obj.status or {}
local release = status.canaryStatus or status.blueGreenStatus
local stalled = false
for _, c in ipairs(status.conditions or {}) do
  if c.type == "Stalled" and c.status == "True" then stalled = true end
end
local moves = status.phase == "Progressing" and release ~= nil
actions["approve"] = {disabled = not (moves and (stalled or release.currentStepState == "StepPaused"))}
actions["retry"] = {disabled = not (moves and stalled)}
return actions
