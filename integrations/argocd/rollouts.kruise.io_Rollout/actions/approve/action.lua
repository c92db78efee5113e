-- Approves the step that the release waits at.
local release = obj.status.canaryStatus or obj.status.blueGreenStatus
release.currentStepState = "StepReady"
return obj
