-- Degraded while a namespace lacks its copy.
local status = obj.status
if status == nil or status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "The controller has not seen the newest spec yet"}
end
local done = (status.succeeded or 0) .. " of " .. (status.desired or 0) .. " namespaces have their copy"
if (status.failed or 0) > 0 then return {status = "Degraded", message = done} end
if (status.succeeded or 0) < (status.desired or 0) then return {status = "Progressing", message = done} end
return {status = "Healthy", message = done}
