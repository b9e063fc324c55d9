package status

import (
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/installationstate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/sample"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
)

var (
	factsOf, runningEtcd     = sample.Facts, sample.RunningEtcd
	installOf, agentIn, noon = sample.Install, sample.Agent, sample.Noon
)

// viewOf returns the input of the conditions before any phase has found anything.
func viewOf(f *facts.Facts) *View {
	installationstate.Decide(f)
	return &View{Facts: f, Found: tasks.FindingsOf(f), Removal: func() (*removal.Situation, error) { return removal.Of(f) }}
}
