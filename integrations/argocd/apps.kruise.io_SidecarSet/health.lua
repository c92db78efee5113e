-- As the condition Progressing says.
local status = obj.status
if status == nil or status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "The controller has not seen the newest spec yet"}
end
for _, c in ipairs(status.conditions or {}) do
  if c.type == "Progressing" then
    if c.reason == "Paused" then
      return {status = "Suspended", message = c.message or "The update is paused"}
    end
    if c.reason == "Updating" then
      return {status = "Progressing", message = c.message or "Pods are being updated"}
    end
    if c.reason == "Invalid" then
      return {status = "Degraded", message = c.message or "The spec can not be carried out"}
    end
  end
end
return {status = "Healthy", message = (status.updatedReadyPods or 0) .. " of " .. (status.matchedPods or 0) .. " Pods are updated and ready"}
