-- Healthy once the controller has seen it: that no Pod may go is no failure of it.
local status = obj.status
if status == nil or status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "The controller has not seen the newest spec yet"}
end
return {status = "Healthy", message = (status.unavailableAllowed or 0) .. " Pods may be made unavailable"}
