package plan

import "time"

// Builder collects the parts of a Plan.
type Builder struct {
	plan  Plan
	first Stage
	main  Stage
	last  Stage
}

// For starts the plan of an owner that summary describes in a line.
func For(summary string) *Builder {
	return &Builder{plan: Plan{Summary: summary}}
}

// First adds writes that all others must wait for, such as the revision that new Pods refer to.
func (b *Builder) First(chain ...Action) {
	b.first = append(b.first, chain)
}

// Do adds writes that depend on each other and on nothing else. No writes add nothing.
func (b *Builder) Do(chain ...Action) {
	if len(chain) > 0 {
		b.main = append(b.main, chain)
	}
}

// Last adds writes that wait for all others. No writes add nothing.
func (b *Builder) Last(chain ...Action) {
	if len(chain) > 0 {
		b.last = append(b.last, chain)
	}
}

// Hold notes what has to wait, and why.
func (b *Builder) Hold(h Hold) {
	b.plan.Holds = append(b.plan.Holds, h)
}

// Recheck asks for another pass after wait. The soonest of several requests counts; one that is not positive is ignored.
func (b *Builder) Recheck(wait time.Duration, why string) {
	if wait <= 0 || (b.plan.Recheck > 0 && b.plan.Recheck <= wait) {
		return
	}
	b.plan.Recheck, b.plan.RecheckWhy = wait, why
}

// Stop returns a plan that does nothing because the owner's spec can't be read, and says so.
func (b *Builder) Stop(problem error) Plan {
	return Plan{Summary: b.plan.Summary, Problem: problem}
}

// Plan returns what has been collected.
func (b *Builder) Plan() Plan {
	p := b.plan
	for _, stage := range []Stage{b.first, b.main, b.last} {
		if len(stage) > 0 {
			p.Stages = append(p.Stages, stage)
		}
	}
	return p
}
