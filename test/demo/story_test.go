package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestChangesAreToldOnce(t *testing.T) {
	g := NewWithT(t)
	var out strings.Builder
	shown := map[string]string{}
	tree := item{title: "Cluster ha", state: "Provisioning", children: []item{{title: "Machine ha-1", state: "Pending", waits: "WaitingForHost"}}}

	changes(&out, shown, tree)
	g.Expect(out.String()).To(MatchRegexp(`^\S+ Cluster ha: Provisioning\n\S+ Machine ha-1: Pending \[WaitingForHost\]\n$`))

	out.Reset()
	changes(&out, shown, tree)
	g.Expect(out.String()).To(BeEmpty(), "nothing changed")

	tree.children[0].state, tree.children[0].done = "Running", true
	changes(&out, shown, tree)
	g.Expect(out.String()).To(MatchRegexp(`^\S+ Machine ha-1: Running\n$`), "what is done waits for nothing")
}

func TestMessagesAreShort(t *testing.T) {
	g := NewWithT(t)
	g.Expect(waits("45%: Installation in progress; events: http://service/events; logs: http://service/logs")).
		To(Equal("45%: Installation in progress"))
	g.Expect(clusterWaits("* RemoteConnectionProbe: not established\n* ControlPlaneAvailable: not installed\n* WorkersAvailable:\n  * MachineDeployment ha: 0 available")).
		To(Equal("RemoteConnectionProbe: not established"), "the rest is told below")
}
