-- Runs the step anew that has stopped the release.
local release = obj.status.canaryStatus or obj.status.blueGreenStatus
release.nextStepIndex = release.currentStepIndex
return obj
