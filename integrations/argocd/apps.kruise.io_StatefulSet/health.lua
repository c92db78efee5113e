-- Progressing while Pods are updated, Suspended while paused or held by the partition, Degraded past a deadline or on failures.
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
local rolling = strategy.rollingUpdate or strategy
local updated, available = status.updatedReplicas or 0, status.availableReplicas or 0
local wanted = obj.spec.replicas
if wanted == nil then wanted = 1 end
local expected = wanted - math.min(rolling.partition or 0, wanted)
if strategy.type == "OnDelete" then
  expected = updated
end
if updated < expected and rolling.paused then
  return {status = "Suspended", message = "The update is paused: " .. updated .. " of " .. expected .. " Pods are updated"}
end
if updated < expected then
  return {status = "Progressing", message = updated .. " of " .. expected .. " Pods are updated" .. waits}
end
if (status.replicas or 0) ~= wanted or available < wanted then
  return {status = "Progressing", message = available .. " of " .. wanted .. " Pods are available" .. waits}
end
if updated < wanted and strategy.type ~= "OnDelete" and status.currentRevision ~= status.updateRevision then
  return {status = "Suspended", message = "The partition keeps " .. (wanted - updated) .. " Pods at the older revision"}
end
return {status = "Healthy", message = available .. " of " .. wanted .. " Pods are available"}
