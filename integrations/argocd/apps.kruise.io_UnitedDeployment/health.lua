-- Progressing while subsets come to their numbers and their template, Degraded while a subset fails.
local status = obj.status
if status == nil or status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "The controller has not seen the newest spec yet"}
end
for _, c in ipairs(status.conditions or {}) do
  if c.type == "SubsetFailure" and c.status == "True" then
    return {status = "Degraded", message = c.message or c.reason or "A subset fails"}
  end
end
local wanted = obj.spec.replicas or status.replicas or 0
local ready, updated = status.readyReplicas or 0, status.updatedReplicas or 0
if ready < wanted then
  return {status = "Progressing", message = ready .. " of " .. wanted .. " Pods are ready"}
end
local partitions = 0
for _, s in ipairs(status.subsetStatuses or {}) do
  partitions = partitions + (s.partition or 0)
end
if updated < wanted - partitions then
  return {status = "Progressing", message = updated .. " of " .. wanted - partitions .. " Pods are updated"}
end
if partitions > 0 and updated < wanted then
  return {status = "Suspended", message = "Partitions keep " .. (wanted - updated) .. " Pods at the older template"}
end
return {status = "Healthy", message = ready .. " of " .. wanted .. " Pods are ready"}
