package e2e

import (
	"context"
	"path"
	"slices"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

var _ = Describe("A host", Label("hosts"), func() {
	It("whose hardware assisted-service does not publish is discovered after some minutes", Label("nightly"), func(ctx SpecContext) {
		onlySimulated()
		const namespace = "stale"
		laboratory.Service.LoseNotification(namespace)
		cluster := apply(ctx, "sno", lab.Mutations{Namespace: namespace, ClusterName: "unseen", LightAPI: lightly()})
		wait(ctx, cluster, "waiting for hardware", func(s *lab.State) bool { return configHas(s, bootstrapv1.WaitingForHostIdentityReason) })
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)
	}, NodeTimeout(2*installTimeout))
})

var _ = Describe("A host that is not ours", Label("hosts"), func() {
	It("is neither bound nor approved, and the installation continues without it", func(ctx SpecContext) {
		const namespace = "impostor"
		// Another machine boots as the first BareMetalHost than the inspected one.
		thief := hosts.NewHardware("thief")
		laboratory.Rack.SwapHardware(path.Join(namespace, "rack-0"), thief)
		cluster := apply(ctx, "compact", lab.Mutations{Namespace: namespace, ClusterName: "rack", LightAPI: lightly()})

		By("refusing a machine that differs from the inspected one, and reporting its addresses")
		refused := wait(ctx, cluster, "refusing a host", func(s *lab.State) bool { return refusedMachine(s) != nil })
		machine := refusedMachine(refused)
		identified := lab.Condition(machine.Config.Status.Conditions, bootstrapv1.HostIdentifiedCondition)
		Expect(strings.ToLower(identified.Message)).To(ContainSubstring(thief.NICs[0].MAC))
		Eventually(func() string {
			var messages strings.Builder
			for _, event := range events(ctx, namespace, bootstrapv1.HostRefusedReason) {
				messages.WriteString(strings.ToLower(event.Message))
			}
			return messages.String()
		}).Should(ContainSubstring(thief.NICs[0].MAC), "an Event")

		By("ignoring a foreign server that boots the image of a Machine in addition to its host")
		stranger := hosts.NewHardware("stranger")
		_, err := laboratory.Rack.BootUnmanaged(imageOf(refused, machine), stranger)
		Expect(err).NotTo(HaveOccurred())
		wait(ctx, cluster, "with the Agent of the foreign server", func(s *lab.State) bool { return agentOf(s, stranger) })

		By("installing the right machine once it boots")
		key := path.Join(namespace, "rack-0")
		laboratory.Rack.SetHardware(key, hosts.NewHardware(key))
		laboratory.Rack.Host(key).Reboot()
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0, laboratory.Rack.Host(key))
		s := state(ctx, cluster)
		Expect(agentOf(s, stranger)).To(BeTrue(), "the Agent of the foreign server still exists")
		for _, m := range s.Machines {
			Expect(m.Agent.Name).NotTo(BeElementOf(stranger.UUID, thief.UUID))
		}
	}, NodeTimeout(2*installTimeout))

	It("is refused when its BMC address was another server's from the start, until the BareMetalHost is recreated", func(ctx SpecContext) {
		const namespace = "wrong-bmc"
		// The BMC that the BareMetalHost names belongs to another server: inspection and boot reach that one. Only
		// spec.bootMACAddress is the wanted server's.
		key, other := path.Join(namespace, "cabled-0"), hosts.NewHardware("other-server")
		laboratory.Rack.SetHardware(key, other)
		cluster := apply(ctx, "sno", lab.Mutations{Namespace: namespace, ClusterName: "cabled", LightAPI: lightly()})
		created := cluster.Hosts[0]
		s := wait(ctx, cluster, "refusing the host", func(s *lab.State) bool { return refusedMachine(s) != nil })
		refused := refusedMachine(s)
		message := lab.Condition(refused.Config.Status.Conditions, bootstrapv1.HostIdentifiedCondition).Message
		Expect(strings.ToLower(message)).To(And(
			ContainSubstring(strings.ToLower(created.Spec.BootMACAddress)), ContainSubstring(other.NICs[0].MAC), ContainSubstring("bmc.invalid")))
		Expect(s.Agents).To(ContainElement(HaveField("ObjectMeta.Name", other.UUID)))
		expectOnlyOurAgents(s)

		By("recreating it, as the message advises: the address of a BMC cannot be changed")
		Expect(laboratory.Client().Delete(ctx, created.DeepCopy())).To(MatchError(apierrors.IsInvalid, "is refused: the host is in use"))
		recreateHost(ctx, cluster, func(*metal3api.BareMetalHost) { laboratory.Rack.SetHardware(key, hosts.NewHardware(key)) })
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0, laboratory.Rack.Host(key))
		Expect(state(ctx, cluster).Machines[0].Agent.Name).NotTo(Equal(other.UUID))
	}, NodeTimeout(3*installTimeout))

	It("is not started while another BareMetalHost shows that its server is in use", func(ctx SpecContext) {
		const namespace, elsewhere = "claimed", "claimed-elsewhere"
		// The server was installed by another tool, and a user copied its BareMetalHost for Cluster API.
		Expect(laboratory.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: elsewhere}})).To(Succeed())
		hardware := hosts.NewHardware(path.Join(namespace, "copied-0"))
		original := &metal3api.BareMetalHost{ObjectMeta: metav1.ObjectMeta{
			Namespace: elsewhere, Name: "original", Annotations: map[string]string{metal3api.DetachedAnnotation: "e2e"},
		}}
		original.Spec.BootMACAddress, original.Spec.ExternallyProvisioned = hardware.NICs[0].MAC, true
		original.Spec.BMC = metal3api.BMCDetails{
			Address:         "redfish+https://BMC.invalid:443/redfish/v1/Systems/" + hardware.UUID,
			CredentialsName: "original-bmc",
		}
		Expect(laboratory.Client().Create(ctx, original)).To(Succeed())
		cluster := apply(ctx, "sno", lab.Mutations{Namespace: namespace, ClusterName: "copied", LightAPI: lightly()})
		s := wait(ctx, cluster, "not starting a server that is in use",
			func(s *lab.State) bool { return configHas(s, bootstrapv1.ServerInUseReason) })
		Expect(lab.Condition(s.Machines[0].Config.Status.Conditions,
			bootstrapv1.ReadyCondition).Message).To(ContainSubstring("BareMetalHost claimed-elsewhere/original"))
		Expect(s.Machines[0].Config.Status.DataSecretName).To(BeEmpty())
		Expect(rackHostOf(cluster.Hosts[0]).Boots()).To(BeEmpty())

		By("starting it once the other BareMetalHost is deleted")
		Expect(laboratory.Client().Delete(ctx, original)).To(Succeed())
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)
	}, NodeTimeout(2*installTimeout))

	It("is not installed with less than the required hardware, until the requirement is lowered", Label("nightly"), func(ctx SpecContext) {
		cluster := apply(ctx, "sno", lab.Mutations{
			Namespace: "small-host", ClusterName: "small",
			Edit: edit(controlPlaneKind, map[string]any{"minCPUCores": int64(64)}, "spec", "openshiftAssistedConfigSpec", "hostRequirements"),
		})
		s := wait(ctx, cluster, "refusing a small host", func(s *lab.State) bool {
			return configHas(s, bootstrapv1.HostBelowRequirementsReason)
		})
		ready := lab.Condition(s.Machines[0].Config.Status.Conditions, bootstrapv1.ReadyCondition)
		Expect(ready.Message).To(And(ContainSubstring("16"), ContainSubstring("64")), "the present and the required number")
		expectOnlyOurAgents(s)
		patch(ctx, controlPlaneOf(cluster), `{"spec":{"openshiftAssistedConfigSpec":{"hostRequirements":{"minCPUCores":16}}}}`)
		waitAvailable(ctx, cluster)
	}, NodeTimeout(2*installTimeout))
})

// recreateHost deletes the BareMetalHost and the refused Machine of a cluster of one host, and creates the host with a change.
// Addresses of BMCs and MAC addresses cannot be changed.
func recreateHost(ctx context.Context, cluster *lab.Cluster, change func(*metal3api.BareMetalHost)) {
	GinkgoHelper()
	created, refused := cluster.Hosts[0], refusedMachine(state(ctx, cluster))
	Expect(refused).NotTo(BeNil())
	patch(ctx, created.DeepCopy(), `{"metadata":{"annotations":{"bootstrap.cluster.x-k8s.io/allow-deletion":"true"}}}`)
	Expect(laboratory.Client().Delete(ctx, created.DeepCopy())).To(Succeed())
	Expect(laboratory.Client().Delete(ctx, refused.Machine.DeepCopy())).To(Succeed())
	Eventually(ctx, func() error { return laboratory.Client().Get(ctx, keyOf(created), created.DeepCopy()) }).
		WithTimeout(deleteTimeout).Should(MatchError(apierrors.IsNotFound, "gone"))
	// While the infra machine of the former Machine exists, CAPM3 takes a BareMetalHost of that name for its
	// former host. troubleshooting.md advises to wait for the deletion of both.
	wait(ctx, cluster, "without the infra machine of the former Machine", func(s *lab.State) bool {
		return !slices.ContainsFunc(s.Machines, func(m lab.Machine) bool { return m.Infra != nil && m.Infra.GetUID() == refused.Infra.GetUID() })
	})
	next := created.DeepCopy()
	next.ResourceVersion, next.UID = "", ""
	change(next)
	Expect(laboratory.Client().Create(ctx, next)).To(Succeed())
	// The Bare Metal Operator makes the host its owner, and it is deleted with the host.
	credentials := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: created.Namespace, Name: created.Spec.BMC.CredentialsName},
		StringData: map[string]string{"username": "admin", "password": hosts.BMCPassword},
	}
	Eventually(ctx, func() error {
		return client.IgnoreAlreadyExists(laboratory.Client().Create(ctx, credentials.DeepCopy()))
	}).Should(Succeed())
}

func refusedMachine(s *lab.State) *lab.Machine {
	for i, m := range s.Machines {
		if m.Config != nil && lab.Condition(m.Config.Status.Conditions,
			bootstrapv1.HostIdentifiedCondition).Reason == bootstrapv1.HostRefusedReason {
			return &s.Machines[i]
		}
	}
	return nil
}

// configHas reports whether the summary of any config has the reason.
func configHas(s *lab.State, reason string) bool {
	for _, m := range s.Machines {
		if m.Config != nil && lab.Condition(m.Config.Status.Conditions, bootstrapv1.ReadyCondition).Reason == reason {
			return true
		}
	}
	return false
}

// imageOf returns the URL of the image that the Machine's host boots.
func imageOf(s *lab.State, m *lab.Machine) string {
	GinkgoHelper()
	for _, infraEnv := range s.InfraEnvs {
		if infraEnv.Name == m.Name {
			return infraEnv.Status.ISODownloadURL
		}
	}
	Fail("Machine " + m.Name + " has no InfraEnv")
	return ""
}

func agentOf(s *lab.State, hardware hosts.Hardware) bool {
	for _, agent := range s.Agents {
		if agent.Name == hardware.UUID {
			return true
		}
	}
	return false
}
