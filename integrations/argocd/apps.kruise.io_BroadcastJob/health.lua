-- As the phase says.
local status = obj.status
if status == nil or status.phase == nil then
  return {status = "Progressing", message = "The job has not been looked at yet"}
end
local done = (status.succeeded or 0) .. " of " .. (status.desired or 0) .. " nodes are done"
if status.phase == "completed" then return {status = "Healthy", message = done} end
if status.phase == "failed" then return {status = "Degraded", message = (status.failed or 0) .. " Pods have failed"} end
if status.phase == "paused" then return {status = "Suspended", message = done} end
return {status = "Progressing", message = done}
