package report

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/judge"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

func TestTextOfHosts(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	i := &snapshot.Inventory{Namespace: "lab", Hosts: make([]metal3.Host, 3)}
	g.Expect(WriteFits(&out, i, nil)).To(Succeed())
	g.Expect(out.String()).To(Equal("No Machine in namespace lab waits for a BareMetalHost.\n"))

	out.Reset()
	i.NotReadable = map[string]string{snapshot.KindConfig: snapshot.NoPermission}
	machine := func(name string) judge.Object {
		return judge.Object{Kind: snapshot.KindMachine, Namespace: "lab", Name: name}
	}
	g.Expect(WriteFits(&out, i, []judge.Fit{
		{
			Machine: machine("m0"), Fitting: []string{"rack0", "rack1"}, Others: []judge.Mismatch{{Host: "rack2", Reason: "in use"}},
			Reported: &judge.Reported{Available: true, Reason: "HostsFit", Message: "BareMetalHosts that fit: rack0, rack1"},
		},
		{Machine: machine("m1"), Problem: "Metal3 waits for BareMetalHost rack2."},
	})).To(Succeed())
	g.Expect("\n" + out.String()).To(Equal(`
Machine lab/m0: 2 of 3 BareMetalHosts fit: rack0, rack1
  rack2: in use
  The provider reports HostsFit: BareMetalHosts that fit: rack0, rack1

Machine lab/m1: 0 of 3 BareMetalHosts fit
  Metal3 waits for BareMetalHost rack2.

OpenshiftAssistedConfigs are not readable (no permission): their requirements for hosts are not compared.
`))
}
