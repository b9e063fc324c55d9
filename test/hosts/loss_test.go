package hosts

import (
	"context"
	"sync"
	"testing"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	"github.com/openshift/assisted-service/models"
	"k8s.io/apimachinery/pkg/types"
)

// The loss of the disk of an installed node is not visible afterwards: each cause is recorded.
func TestLossesOfInstalledNodes(t *testing.T) {
	for situation, c := range map[string]struct {
		take func(l *lab, h *Host)
		lost []string
	}{
		"the image is removed": {
			func(l *lab, _ *Host) { l.change("host-0", withoutImage) }, []string{"deprovisioned and cleaned"},
		},
		"the image is removed, and the disk is not cleaned: the node is not booted any more": {
			func(l *lab, _ *Host) {
				l.change("host-0", func(bmh *metal3api.BareMetalHost) {
					bmh.Spec.AutomatedCleaningMode = metal3api.CleaningModeDisabled
					withoutImage(bmh)
				})
			}, []string{"deprovisioned without cleaning"},
		},
		"another image": {
			func(l *lab, _ *Host) { l.bootISO("host-0", "another") }, []string{"deprovisioned and cleaned"},
		},
		"another medium, without the Bare Metal Operator": {
			func(_ *lab, h *Host) { h.provision(liveISO("another", "")) }, []string{"provisioned again with live ISO of InfraEnv another"},
		},
		"the BareMetalHost is deleted": {
			func(l *lab, _ *Host) { l.Expect(l.hub.Delete(l.ctx, l.get("host-0"))).To(Succeed()) }, []string{"deprovisioned and cleaned"},
		},
		"it is installed again": {
			func(l *lab, h *Host) {
				h.WrongBoot()
				order, _ := h.Instruction()
				l.service.order(h.Hardware().UUID, order)
			}, []string{installedAgain},
		},
		"it is installed and deprovisioned again": {
			func(l *lab, h *Host) {
				h.WrongBoot()
				order, _ := h.Instruction()
				l.service.order(h.Hardware().UUID, order)
				l.Eventually(h.Losses).Should(HaveLen(1))
				l.Eventually(h.Stage).Should(Equal(models.HostStageDone))
				l.change("host-0", withoutImage)
			}, []string{installedAgain, "deprovisioned and cleaned"},
		},
	} {
		t.Run(situation, func(t *testing.T) {
			reported := &losses{}
			l := newLab(t, func(o *Options) { o.Lost = reported.add })
			h := l.installedAlone()
			c.take(l, h)
			l.Eventually(func() []string { return hows(h.Losses()) }).Should(Equal(c.lost))
			l.Eventually(reported.all).Should(Equal(h.Losses()), "all losses are reported")
			l.Expect(h.Losses()).To(HaveEach(And(
				HaveField("Node", "host-0-node"), HaveField("Key", types.NamespacedName{Namespace: labNamespace, Name: "host-0"}),
				HaveField("Cluster", types.NamespacedName{Namespace: labNamespace, Name: "c1"}),
			)))
			l.Expect(h.Losses()[0].Again).To(Equal(c.lost[0] == installedAgain))
		})
	}
}

func TestNoLossWithoutNode(t *testing.T) {
	l := newLab(t)
	h := l.booted(1)[0]
	h.Reboot()
	l.Eventually(h.Registrations).Should(Equal(2))
	l.change("host-0", withoutImage)
	l.Eventually(l.state("host-0")).Should(Equal(metal3api.StateAvailable))
	l.Expect(h.Losses()).To(BeEmpty())
}

func TestNoLossByReboot(t *testing.T) {
	l := newLab(t)
	h := l.installedAlone()
	h.WrongBoot()
	l.Eventually(h.Registrations).Should(Equal(2))
	h.Reboot()
	l.Eventually(func() System { return h.Boots()[len(h.Boots())-1].System }).Should(Equal(Installed))
	l.Expect(h.Losses()).To(BeEmpty())
}

// installedAlone returns a host that is installed as a single node.
func (l *lab) installedAlone() *Host {
	h := l.booted(1)[0]
	order := installOrder(h, models.HostRoleMaster)
	order.Bootstrap, order.SingleNode = true, true
	l.service.order(h.Hardware().UUID, order)
	l.Eventually(h.Stage).Should(Equal(models.HostStageDone))
	l.installed(h)
	return h
}

func withoutImage(bmh *metal3api.BareMetalHost) { bmh.Spec.Image, bmh.Spec.Online = nil, false }

// losses are the reported losses.
type losses struct {
	mu       sync.Mutex
	reported []Loss
}

func (l *losses) add(_ context.Context, loss Loss) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reported = append(l.reported, loss)
}

func (l *losses) all() []Loss {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Loss(nil), l.reported...)
}

func hows(losses []Loss) []string {
	var all []string
	for _, loss := range losses {
		all = append(all, loss.How)
	}
	return all
}
