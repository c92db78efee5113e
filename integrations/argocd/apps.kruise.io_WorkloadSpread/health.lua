-- Healthy once the controller has seen it.
local status = obj.status
if status == nil or status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "The controller has not seen the newest spec yet"}
end
return {status = "Healthy", message = (status.assigned or 0) .. " Pods are in subsets"}
