package installed

import (
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/installationstate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/sample"
)

var factsOf, installOf, agentIn = sample.Facts, sample.Install, sample.Agent

// viewOf returns the input of the conditions of a reconcile in which no phase was blocked.
func viewOf(f *facts.Facts) *View {
	installationstate.Decide(f)
	return &View{Facts: f, Present: f.Machines}
}
