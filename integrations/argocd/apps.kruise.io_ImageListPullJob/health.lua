-- Progressing until all nodes have the images or have given up.
local status = obj.status
if status == nil or status.desired == nil then
  return {status = "Progressing", message = "The job has not been looked at yet"}
end
local done = (status.succeeded or 0) .. " of " .. status.desired .. " images are on all nodes"
local failed = #(status.failedImageStatuses or {})
if obj.spec.completionPolicy ~= nil and obj.spec.completionPolicy.type == "Never" then
  if failed > 0 then return {status = "Degraded", message = done .. "; " .. failed .. " have failed"} end
  return {status = "Healthy", message = done}
end
if status.completionTime == nil then return {status = "Progressing", message = done} end
if failed > 0 then return {status = "Degraded", message = done .. "; " .. failed .. " have failed"} end
return {status = "Healthy", message = done}
