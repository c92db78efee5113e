-- Healthy while it makes jobs, whatever becomes of these.
if obj.spec.paused then
  return {status = "Suspended", message = "No jobs are made while it is paused"}
end
return {status = "Healthy", message = #((obj.status or {}).active or {}) .. " jobs are active"}
