-- Suspended while a person is waited for, Degraded while a release is stuck; canary, partition and blueGreen style.
local status = obj.status
if status == nil or status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "The controller has not seen the newest spec yet"}
end
local release = status.canaryStatus or status.blueGreenStatus or {}
local strategy = obj.spec.strategy or {}
local message = status.message or release.message or ""
for _, c in ipairs(status.conditions or {}) do
  if c.type == "Stalled" and c.status == "True" then
    return {status = "Degraded", message = (c.reason or "Stalled") .. ": " .. (c.message or message)}
  end
end
if status.phase == "Disabled" then return {status = "Suspended", message = "The Rollout is disabled"} end
if status.phase == "Healthy" then return {status = "Healthy", message = message} end
if status.phase == "Progressing" then
  local step = "Step " .. (release.currentStepIndex or 0) .. ": "
  if strategy.paused then return {status = "Suspended", message = step .. "the release is paused"} end
  if release.currentStepState == "StepPaused" then return {status = "Suspended", message = step .. message} end
  return {status = "Progressing", message = step .. message}
end
return {status = "Progressing", message = message}
