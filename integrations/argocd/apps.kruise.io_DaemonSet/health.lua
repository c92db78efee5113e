-- Progressing while Pods are updated, Suspended while paused or held by partition or selector, Degraded on failures.
local status = obj.status
if status == nil or status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "The controller has not seen the newest spec yet"}
end
for _, c in ipairs(status.conditions or {}) do
  if c.type == "Progressing" and c.reason == "ProgressDeadlineExceeded" then
    return {status = "Degraded", message = "No progress for progressDeadlineSeconds: " .. (c.message or "")}
  end
  if string.sub(c.type, 1, 6) == "Failed" and c.status == "True" then
    return {status = "Degraded", message = c.type .. ": " .. (c.message or "")}
  end
end
local waits = ""
for _, c in ipairs(status.conditions or {}) do
  if c.type == "Waiting" and c.status == "True" then
    waits = "; waits: " .. (c.message or c.reason or "")
  end
end
local strategy = obj.spec.updateStrategy or {}
local rolling = strategy.rollingUpdate or {}
local desired, updated, available = status.desiredNumberScheduled or 0, status.updatedNumberScheduled or 0, status.numberAvailable or 0
if available < desired then
  return {status = "Progressing", message = available .. " of " .. desired .. " nodes have an available Pod" .. waits}
end
if updated < desired and strategy.type ~= "OnDelete" then
  if rolling.paused then
    return {status = "Suspended", message = "The update is paused: " .. updated .. " of " .. desired .. " nodes are updated"}
  end
  local partition = rolling.partition
  if rolling.selector ~= nil or (partition ~= nil and partition ~= 0 and partition ~= "0%") then
    return {status = "Suspended", message = "Partition or selector keep " .. (desired - updated) .. " nodes at the older revision"}
  end
  return {status = "Progressing", message = updated .. " of " .. desired .. " nodes are updated" .. waits}
end
return {status = "Healthy", message = available .. " of " .. desired .. " nodes have an available Pod"}
