package compat

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// proofs are what users of Rollouts rely on, scenarios by the number that tests name them by and traps by theirs, and which tests show it: the
// folder, the function, and behind it, where it is one case of a table, the name of that.
func proofs() map[string][]string {
	const kinds, cli = "test/kinds/rollouts", "test/kinds/cli"
	const steps, steer, sizes, handler = "internal/rules/release", "internal/rules/steer", "internal/rules/replicasets", "internal/admission/releasing"
	return map[string][]string{
		"1 a Deployment and a CloneSet go through their batches, and are in the end what was applied": {
			kinds + " TestScenario1BatchesOfADeployment", kinds + " TestScenario1BatchesOfACloneSet"},
		"2 a percentage below 100% leaves one Pod of a Deployment":                          {kinds + " TestScenario2CapBelowAll"},
		"3 a percentage follows when a workload is scaled":                                  {kinds + " TestScenario3PercentAndScale", kinds + " TestADeploymentIsScaledInABatch"},
		"4 a CloneSet of 101 Pods keeps exactly one":                                        {kinds + " TestScenario4LargeCloneSet"},
		"5 a StatefulSet is updated from its highest ordinal down":                          {kinds + " TestScenario5StatefulSetOrder"},
		"6 a second Deployment takes a share of the requests by an Ingress":                 {kinds + " TestScenario6CanaryOfADeployment", kinds + " TestScenario6Weights"},
		"7 the Service selects old Pods alone before the first new one is there":            {kinds + " TestScenario7NoLeakBeforeTraffic", kinds + " TestScenario7PinnedBeforeTheFirstPod"},
		"8 the old template brings all back, and requests go back before Pods":              {kinds + " TestScenario8DirectRollback", kinds + " TestScenario8RollbackOfADeployment", kinds + " TestScenario8RollbackOfACanary", kinds + " TestScenario8TrafficGoesBackFirst"},
		"9 a paused release is rolled back":                                                 {kinds + " TestScenario9RollbackWhilePaused"},
		"10 a third version begins anew, and the second gets no requests":                   {kinds + " TestScenario10ContinuousRelease", kinds + " TestScenario10ContinuousReleaseOfADeployment", kinds + " TestScenario10ThirdTemplateInACanary", kinds + " TestScenario10NoTrafficForTheVersionBetween"},
		"11 a jump is obeyed once, and a jump back changes traffic alone":                   {kinds + " TestScenario11Jump", kinds + " TestScenario11JumpOfTraffic"},
		"12 a change of the steps is followed, and stands for no approval":                  {kinds + " TestScenario12PlanEdit", kinds + " TestScenario12EditOfTraffic"},
		"13 a pause stops the batch that is under way":                                      {kinds + " TestScenario13PauseStops"},
		"14 a tool that writes manifests back leaves nothing frozen":                        {kinds + " TestScenario14AHostileWriter", kinds + " TestScenario14HostileWriterOfACanary", kinds + " TestScenario14WithAHostileWriter", kinds + " TestADaemonSetBesideAHostileWriter", kinds + " TestScenario14OverSeeds"},
		"15 a manager that is killed in any state goes on where it was":                     {kinds + " TestScenario15ACanaryKilledAtEachState", kinds + " TestScenario15ADeploymentKilledAtEachState", kinds + " TestScenario15OverSeeds", "test/sim/releases TestPromisesOverCanaries"},
		"16 all new Pods come up beside the old ones, and traffic moves there and back":     {kinds + " TestScenario16BlueGreen", kinds + " TestAThirdVersionBesideTwo", kinds + " TestRollbackOfABlueGreenRelease"},
		"17 of a route only the rule that leads to the Service changes, and it is restored": {kinds + " TestScenario17GatewayAPI", kinds + " TestScenario17RouteOfACanary"},
		"18 a subset of Istio takes a share, and both objects are restored":                 {kinds + " TestScenario18Istio"},
		"19 a way back follows the steps if it is asked to":                                 {kinds + " TestScenario19RollbackInBatches"},
		"20 Pods tell the batch that has updated them, also those that replace one":         {kinds + " TestScenario20Labels"},
		"21 a threshold says how many updated Pods may be not ready":                        {kinds + " TestScenario21FailureThreshold", steps + " TestBatchReady"},
		"22 what is no release is not intercepted":                                          {kinds + " TestScenario22NotIntercepted", kinds + " TestScenario22ADeploymentNotIntercepted"},
		"23 a second Rollout of a workload is refused":                                      {kinds + " TestScenario23TwoRollouts"},
		"24 two Rollouts share a route, which is restored after the last of them":           {kinds + " TestScenario24EndToEnd"},
		"25 both versions of a Rollout say the same":                                        {kinds + " TestScenario25Conversion"},

		"T1 no Deployment is left paused or with Recreate": {kinds + " TestARecreateOfTheOriginalIsUndone", kinds + " TestARolloutThatIsForcedAway", kinds + " TestScenario14AHostileWriter",
			steer + " TestARecreateOfTheOriginalIsEnded", "test/sim/releases TestPromises"},
		"T2 the webhook leaves a workload alone whose mark names no Rollout":                                {handler + " TestHandler/no Rollout, trap T2"},
		"T3 a change that was not intercepted is said":                                                      {kinds + " TestAChangeThatPassesIsSaid", kinds + " TestAnUpdateUnderWayIsSaid"},
		"T4 a paused release heeds a rollback":                                                              {kinds + " TestScenario9RollbackWhilePaused", steps + " TestGoingBack/while paused, trap T4"},
		"T5 a step with fewer Pods than are updated is not passed":                                          {kinds + " TestScenario12PlanEdit", steps + " TestAPlanThatChanges/fewer Pods skip no step, trap T5"},
		"T6 a change that traffic keeps from being intercepted is answered by a warning":                    {handler + " TestHandler/Pods of two revisions and traffic, trap T6"},
		"T7 a stuck batch says why, and so does one whose revision is not known":                            {kinds + " TestAStuckBatchSaysWhy", steps + " TestARevisionThatIsNotKnownIsSaid"},
		"T8 a percentage is a partition only if it keeps what the step keeps":                               {steps + " TestPartitionsKeepWhatTheStepKeeps", kinds + " TestScenario4LargeCloneSet"},
		"T9 Pods of a second Deployment have a label of their own":                                          {kinds + " TestScenario6CanaryOfADeployment"},
		"T10 routes that say little, or much, are split and restored":                                       {kinds + " TestMatchesOfARouteThatSaysLittle", kinds + " TestScenario17GatewayAPI", "internal/rules/traffic TestRoutesOfGatewayAPI/headers, with and without a path, trap T10", "internal/rules/traffic TestEveryRouteIsRestored"},
		"T11 maxSurge and maxUnavailable have defaults of their own":                                        {sizes + " TestLimitsOf/both are 25% where unset", sizes + " TestLimitsOf/maxSurge alone leaves 25% unavailable"},
		"T12 with the gate, and only if it is cut short, a release of any style leaves its workload frozen": {steps + " TestAWorkloadThatIsKeptFrozen/blueGreen", kinds + " TestAWorkloadIsKeptFrozen", kinds + " TestACanaryThatIsKeptFrozen", kinds + " TestABlueGreenReleaseThatIsKept"},
		"T13 what can't be released is said, and conditions say what is so now":                             {"internal/controller/batchrelease TestWhatCannotBeReleasedIsSaid", steps + " TestPausesAndDeadlines"},
		"T14 conversion neither loses, nor shares, nor crashes":                                             {"internal/convert TestRolloutRoundTripsLoseNothing", "internal/convert TestAnEditInTheOlderVersionKeepsTheRest", "internal/convert TestABlueGreenRolloutIsShownWithItsSteps", "internal/admission/validating TestRolloutsOfTheOlderVersion/a blueGreen style", kinds + " TestScenario25Conversion"},
		"T15 a DaemonSet is rolled back, and Pods on their way out are counted right":                       {kinds + " TestAnAdvancedDaemonSet", "internal/rules/ondelete TestNext/a Pod on its way out is never chosen", "internal/rules/ondelete TestNext/a Pod on its way out is waited for"},
		"T16 releases of any style and without traffic are recorded":                                        {"internal/controller/rollout TestTheRecordOfARelease", kinds + " TestARecordOfEachRelease"},
		"T17 the field that names a TrafficRouting works":                                                   {kinds + " TestScenario24EndToEnd", "internal/traffic TestTheFieldWinsOverTheAnnotation"},
		"T18 no updated Pod may be not ready unless a threshold says so, in any style":                      {steps + " TestBatchReady/one is not ready", "internal/controller/rollout TestTheThresholdOfAnyStyle"},
		"T19 two approvals skip nothing":                                                                    {kinds + " TestTwoApprovalsSkipNothing", steps + " TestAnApprovalOfAnotherStep", cli + " TestRollout"},
		"T20 the way back works from a paused Deployment":                                                   {cli + " TestUndoOfAPausedDeployment", cli + " TestAbort"},
		"T21 a Rollout ends whatever else is gone":                                                          {kinds + " TestACanaryOfWhichEverythingIsGone", kinds + " TestACanaryWhoseDeploymentGoes", steps + " TestDisablingAndDeletion", "internal/traffic TestAReleaseThatSomebodyHasLeft"},
		"T22 several Services and routes are driven together":                                               {kinds + " TestSeveralServices", "internal/traffic TestAReleaseLeadsTrafficByEverythingThatItNames"},
		"T23 a grace period outlives a restart, and none stays none":                                        {kinds + " TestAGraceOutlivesARestart"},
		"T24 an Ingress with a resource as backend is split":                                                {kinds + " TestScenario7NoLeakBeforeTraffic", "internal/rules/traffic TestACanaryIngress"},
		"T25 webhooks are served at any port":                                                               {"tools/chart TestValuesOfOlderCharts/containerPort: 9443", kinds + " TestScenario1BatchesOfADeployment"},
		"T26 a workload that is replaced stays frozen":                                                      {kinds + " TestAReplacedManifestStaysFrozen", handler + " TestHandler/a replaced object keeps its marks, trap T26"},
		"T27 tools that judge health find their fields":                                                     {"test/compat TestWhatToolsReadOfARollout"},

		"at rest nothing is written":                                {kinds + " TestNothingIsWrittenAtRest", kinds + " TestARestartWritesNothing"},
		"requests are lost by no release of any kind on real nodes": {"test/long/traffic TestAReleaseLosesNothing", "test/nodes/realops TestOnARealNode"},
	}
}

// TestWhatRolloutsPromiseIsTested: no scenario and no trap is left out, and each test that one is said to be shown by is there.
func TestWhatRolloutsPromiseIsTested(t *testing.T) {
	folders := map[string]map[string]*ast.FuncDecl{}
	all := proofs()
	numbers := map[string]bool{}
	for promise := range all {
		number, _, _ := strings.Cut(promise, " ")
		numbers[number] = true
	}
	for kind, last := range map[string]int{"": 25, "T": 27} {
		for n := range last {
			if number := kind + strconv.Itoa(n+1); !numbers[number] {
				t.Errorf("nothing shows %s", number)
			}
		}
	}
	for _, promise := range slices.Sorted(maps.Keys(all)) {
		for _, proof := range all[promise] {
			folder, name, _ := strings.Cut(proof, " ")
			name, row, isRow := strings.Cut(name, "/")
			if folders[folder] == nil {
				folders[folder] = testsIn(t, folder)
			}
			test := folders[folder][name]
			if test == nil {
				t.Errorf("%q: there is no test %s in %s", promise, name, folder)
			} else if isRow && !says(test, row) {
				t.Errorf("%q: test %s in %s has no case %q", promise, name, folder, row)
			}
		}
	}
}

// testsIn returns the tests of a folder, by name.
func testsIn(t *testing.T, folder string) map[string]*ast.FuncDecl {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*ast.FuncDecl{}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				out[f.Name.Name] = f
			}
		}
	}
	return out
}

// says reports whether a function has a text.
func says(f *ast.FuncDecl, text string) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if literal, is := n.(*ast.BasicLit); is && literal.Value == strconv.Quote(text) {
			found = true
		}
		return !found
	})
	return found
}
