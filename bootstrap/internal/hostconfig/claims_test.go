package hostconfig

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/sample"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

var foreignHost, claimants = sample.ForeignHost, sample.Claimants

const (
	otherBootMAC = sample.OtherBootMAC
	detached     = "baremetalhost.metal3.io/detached"
)

// otherMachine returns a Machine of the cluster with its OpenshiftAssistedConfig, which recorded an Agent.
func otherMachine(agent string) (*clusterv1.Machine, *bootstrapv1.OpenshiftAssistedConfig) {
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "other", UID: "other-uid",
			Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName: "c",
			Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: "bootstrap.cluster.x-k8s.io",
				Kind:     "OpenshiftAssistedConfig", Name: "other",
			}},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "Metal3Machine",
				Name: "other",
			},
		},
	}
	config := &bootstrapv1.OpenshiftAssistedConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other", OwnerReferences: ownedBy(machine)},
		Status:     bootstrapv1.OpenshiftAssistedConfigStatus{AgentRef: &corev1.LocalObjectReference{Name: agent}},
	}
	return machine, config
}

// installedElsewhere returns an installed Agent of another InfraEnv.
func installedElsewhere(name string) *aiv1beta1.Agent {
	agent := discovered(name, "elsewhere", bootMAC)
	agent.Spec.Approved, agent.Spec.IgnitionConfigOverrides = true, "{}"
	agent.Spec.ClusterDeploymentName = &aiv1beta1.ClusterReference{Namespace: namespace, Name: "production"}
	agent.Status.DebugInfo.State = "added-to-existing-cluster"
	return agent
}

// pursue registers, binds and validates the Machine's host, as far as the provider allows.
func (w *world) pursue(name string) {
	w.t.Helper()
	w.create(discovered(name, "m", bootMAC))
	w.reconcile()
	w.registerWithCluster(name, "known")
	w.reconcile()
}

// refusesToApprove expects that an Agent is neither bound nor approved, also after a restart, and that the message names the claimant.
func (w *world) refusesToApprove(name, claimant string) {
	w.t.Helper()
	for range 2 {
		w.Expect(w.agent(name).Spec.Approved).To(BeFalse(), "%s", w.message(bootstrapv1.HostIdentifiedCondition))
		w.Expect(w.agent(name).Spec.ClusterDeploymentName).To(BeNil())
		w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.ServerInUseReason)
		w.Expect(w.message(bootstrapv1.ReadyCondition)).To(ContainSubstring(claimant))
		w.restart()
		w.reconcile()
	}
}

// approves expects that an Agent is bound and approved.
func (w *world) approves(name, because string) {
	w.t.Helper()
	w.enter(name, "known-unbound")
	w.reconcile()
	w.registerWithCluster(name, "known")
	w.reconcile()
	w.Expect(w.agent(name).Spec.Approved).To(BeTrue(), "%s: %s", because, w.message(bootstrapv1.ReadyCondition))
}

// TestServerOfAnotherInstalledMachineIsNotApproved: assisted-service moves the Agent of a server that boots this
// Machine's image, with an empty spec.
func TestServerOfAnotherInstalledMachineIsNotApproved(t *testing.T) {
	for situation, is := range map[string]func(*clusterv1.Machine, *bootstrapv1.OpenshiftAssistedConfig){
		"reported as installed": func(_ *clusterv1.Machine, config *bootstrapv1.OpenshiftAssistedConfig) {
			config.Status.Conditions = []metav1.Condition{{
				Type: bootstrapv1.HostInstalledCondition, Status: metav1.ConditionTrue,
				Reason: "HostInstalled", LastTransitionTime: metav1.Now(),
			}}
		},
		"with a Node": func(machine *clusterv1.Machine, _ *bootstrapv1.OpenshiftAssistedConfig) {
			machine.Status.NodeRef.Name = "node"
		},
		"with a providerID, its status lost": func(machine *clusterv1.Machine, _ *bootstrapv1.OpenshiftAssistedConfig) {
			machine.Spec.ProviderID = "metal3://lab/old/other"
		},
		"being installed": func(_ *clusterv1.Machine, config *bootstrapv1.OpenshiftAssistedConfig) {
			config.Status.InstallationProgress = "Writing image to disk"
		},
	} {
		t.Run(situation, func(t *testing.T) {
			w := booted(t)
			machine, config := otherMachine("a")
			is(machine, config)
			w.create(machine, config)
			w.pursue("a")
			w.refusesToApprove("a", "OpenshiftAssistedConfig other")
			w.Expect(w.event()).To(ContainSubstring(bootstrapv1.ServerInUseReason))
			w.Expect(w.config().Status.AgentRef).To(BeNil())
			w.Expect(w.reconciler.ofOtherConfig(t.Context(), config)).To(HaveLen(1), "its changes are reconciled")

			w.remove(config)
			w.approves("a", "its config is deleted")
		})
	}
}

// TestAgentOnlyRecordedByAnotherConfigIsApproved: nothing was installed for that config.
func TestAgentOnlyRecordedByAnotherConfigIsApproved(t *testing.T) {
	w := booted(t)
	machine, config := otherMachine("a")
	w.create(machine, config)
	w.pursue("a")
	w.reconcile()
	w.Expect(w.agent("a").Spec.Approved).To(BeTrue(), "%s", w.message(bootstrapv1.ReadyCondition))
}

// TestHostOfFormerMachineIsApproved: Cluster API deletes the infrastructure machine first, so that the server
// is released before the config is deleted.
func TestHostOfFormerMachineIsApproved(t *testing.T) {
	for released, expected := range map[bool]string{true: "", false: "OpenshiftAssistedConfig other"} {
		w := booted(t)
		machine, config := otherMachine("a")
		machine.Status.NodeRef.Name = "node"
		config.Finalizers, machine.Finalizers = []string{"x/y"}, []string{"x/y"}
		w.create(machine, config)
		if !released {
			infraMachine := metal3Machine("live-iso")
			infraMachine.SetName("other")
			w.create(infraMachine)
		}
		w.remove(config)
		w.remove(machine)
		w.pursue("a")
		w.reconcile()
		if released {
			w.Expect(w.agent("a").Spec.Approved).To(BeTrue(), "%s", w.message(bootstrapv1.ReadyCondition))
		} else {
			w.refusesToApprove("a", expected)
		}
	}
}

// TestServerWithAnotherAgentInUseIsNotApproved: its system UUID changed, or two servers have the same addresses. Both
// may be members of a running cluster.
func TestServerWithAnotherAgentInUseIsNotApproved(t *testing.T) {
	for situation, is := range map[string]func(*aiv1beta1.Agent){
		"installed": func(*aiv1beta1.Agent) {},
		"bound": func(agent *aiv1beta1.Agent) {
			agent.Spec.Approved, agent.Status.DebugInfo.State = false, "known"
		},
		"approved": func(agent *aiv1beta1.Agent) {
			agent.Spec.ClusterDeploymentName, agent.Status.DebugInfo.State = nil, "known-unbound"
		},
	} {
		t.Run(situation, func(t *testing.T) {
			w := booted(t)
			theirs := installedElsewhere("b")
			is(theirs)
			w.create(theirs)
			w.pursue("a")
			w.refusesToApprove("a", "Agent b of InfraEnv elsewhere")
			w.Expect(w.reconciler.ofAgent(t.Context(), theirs)).To(HaveLen(1), "its changes are reconciled")

			w.remove(w.agent("b"))
			w.approves("a", "the other Agent is deleted")
		})
	}
}

// TestAgentInUseAfterBindingBlocksApproval covers an Agent that registers between binding and approval.
func TestAgentInUseAfterBindingBlocksApproval(t *testing.T) {
	w := booted(t)
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil())
	w.create(installedElsewhere("b"))
	w.registerWithCluster("a", "known")
	w.reconcile()
	w.Expect(w.agent("a").Spec.Approved).To(BeFalse())
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.ServerInUseReason)
}

// TestAgentElsewhereWithoutClaim: an Agent of a former registration does not block the host.
func TestAgentElsewhereWithoutClaim(t *testing.T) {
	for situation, add := range map[string]func(*world){
		"neither bound nor approved": func(w *world) { w.create(discovered("b", "elsewhere", bootMAC)) },
		"being deleted":              func(w *world) { w.left("b", bootMAC) },
		"another server": func(w *world) {
			other := installedElsewhere("b")
			other.Status.Inventory.Interfaces[0].MacAddress = otherBootMAC
			w.create(other)
		},
		"in the Machine's own InfraEnv, after a change of the system UUID": func(w *world) { w.create(discovered("b", "m", bootMAC)) },
	} {
		t.Run(situation, func(t *testing.T) {
			w := booted(t)
			w.create(discovered("a", "m", bootMAC))
			add(w)
			w.reconcile()
			w.registerWithCluster("a", "known")
			w.reconcile()
			w.Expect(w.agent("a").Spec.Approved).To(BeTrue(), "%s", w.message(bootstrapv1.ReadyCondition))
		})
	}
}

// TestServerOfAnotherBareMetalHostIsNotApproved: it is installed in another way, as by ZTP on the same hub, or the
// BareMetalHost was copied.
func TestServerOfAnotherBareMetalHostIsNotApproved(t *testing.T) {
	for situation, claimant := range claimants() {
		t.Run(situation, func(t *testing.T) {
			w := booted(t)
			host := read(w, "rack1-u7", bareMetalHost())
			w.change(host, func() { host.Spec.BMC.Address = "redfish+https://10.0.0.7/redfish/v1/Systems/System.Embedded.1" })
			w.create(claimant)
			w.pursue("a")
			w.refusesToApprove("a", "BareMetalHost site-7/node-0")
			w.Expect(w.message(bootstrapv1.ReadyCondition)).To(ContainSubstring(detached), "how to delete a copy without harm")
			w.Expect(w.reconciler.ofHost(t.Context(), claimant)).To(HaveLen(1), "its changes are reconciled")

			w.remove(claimant)
			w.approves("a", "the other BareMetalHost is deleted")
			w.reconcile()
			w.Expect(w.reconciler.ofHost(t.Context(), claimant)).To(BeEmpty(), "claims on an approved host are ignored")
		})
	}
}

// TestClaimAfterBindingBlocksApproval covers a BareMetalHost that claims the server between binding and
// approval.
func TestClaimAfterBindingBlocksApproval(t *testing.T) {
	w := booted(t)
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil())
	claimant := foreignHost("provisioned")
	claimant.Spec.BootMACAddress = bootMAC
	w.create(claimant)
	w.registerWithCluster("a", "known")
	w.reconcile()
	w.Expect(w.agent("a").Spec.Approved).To(BeFalse())
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.ServerInUseReason)
}

// TestBareMetalHostWithoutClaim does not block the host.
func TestBareMetalHostWithoutClaim(t *testing.T) {
	const chassis = "redfish-virtualmedia://10.0.0.7/redfish/v1/Systems/"
	for situation, other := range map[string]func() *metal3.Host{
		"a free copy": func() *metal3.Host {
			host := foreignHost("available")
			host.Spec.BootMACAddress = bootMAC
			return host
		},
		"another blade of the chassis": func() *metal3.Host {
			host := foreignHost("provisioned")
			host.Spec.BMC.Address = chassis + "2"
			return host
		},
		"a NIC with the same address, as some vendors ship": func() *metal3.Host {
			host := foreignHost("provisioned")
			host.Status.HardwareDetails = &metal3.Hardware{NIC: []metal3.NIC{{MAC: otherBootMAC}, {MAC: "0a:ca:fe:f0:0d:04"}}}
			return host
		},
	} {
		t.Run(situation, func(t *testing.T) {
			w := booted(t)
			host := read(w, "rack1-u7", bareMetalHost())
			w.change(host, func() {
				host.Spec.BMC.Address = chassis + "1"
				host.Status.HardwareDetails = &metal3.Hardware{NIC: []metal3.NIC{{MAC: bootMAC}, {MAC: "0a:ca:fe:f0:0d:04"}}}
			})
			w.create(other())
			w.pursue("a")
			w.reconcile()
			w.Expect(w.agent("a").Spec.Approved).To(BeTrue(), "%s", w.message(bootstrapv1.ReadyCondition))
		})
	}
}

// TestInstalledMachineIgnoresClaims: no condition reports that its server has another owner, and no claim is
// searched.
func TestInstalledMachineIgnoresClaims(t *testing.T) {
	w := booted(t)
	w.pursue("a")
	w.reconcile()
	w.enter("a", "installed")
	w.reconcile()
	claimant := foreignHost("provisioned")
	claimant.Spec.BootMACAddress = bootMAC
	w.create(claimant)
	w.reconcile()
	w.wants(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
	w.Expect(w.reconciler.ofHost(t.Context(), claimant)).To(BeEmpty())
}

// awaiting returns a world whose discovery image exists, and whose Machine has no host yet.
func awaiting(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := newWorld(t, append(values(lab()), objects...)...)
	w.reconcile()
	w.makeImage()
	w.reconcile()
	return w
}

// TestServerInUseGetsNoData: CAPM3 chooses a host once data exists, and the server would be restarted.
func TestServerInUseGetsNoData(t *testing.T) {
	for situation, claimant := range claimants() {
		t.Run(situation, func(t *testing.T) {
			copied, second := freeHost("copied", ""), freeHost("second", "")
			copied.Spec.BMC.Address = "redfish://10.0.0.7/redfish/v1/Systems/System.Embedded.1"
			second.Spec.BootMACAddress, second.Spec.BMC.Address = "02:00:00:00:00:77", "redfish://10.0.0.8/redfish/v1/Systems/System.Embedded.1"
			w := awaiting(t, copied, second, claimant)
			for range 2 {
				w.Expect(w.config().Status.DataSecretName).To(BeEmpty())
				w.wants(bootstrapv1.DataSecretAvailableCondition, metav1.ConditionFalse, bootstrapv1.ServerInUseReason)
				w.Expect(w.message(bootstrapv1.DataSecretAvailableCondition)).To(And(
					ContainSubstring("BareMetalHost lab/copied"), ContainSubstring("BareMetalHost site-7/node-0"), Not(ContainSubstring("second"))))
				w.restart()
				w.reconcile()
			}
			w.clock = w.clock.Add(hostChangesDelay * 3)
			w.reconcile()
			w.Expect(w.message(bootstrapv1.HostAvailableCondition)).To(Equal("BareMetalHosts that fit: second"))
			queue := &late{}
			w.reconciler.hostChanges().Delete(t.Context(), event.DeleteEvent{Object: claimant}, queue)
			w.Expect(queue.at).To(Equal([]string{"m"}), "its changes are reconciled")

			w.remove(claimant)
			w.reconcile()
			w.Expect(w.config().Status.DataSecretName).To(Equal("m"))
		})
	}
}

// TestUnavailableServerInUseGetsNoData: the host may become available after the data was handed out.
func TestUnavailableServerInUseGetsNoData(t *testing.T) {
	for _, state := range []string{"", "registering", "inspecting", "preparing", "in error"} {
		copied := freeHost("copied", "a")
		copied.Status.Provisioning.State = state
		if state == "in error" {
			copied.Status.Provisioning.State, copied.Status.ErrorMessage = "available", "no BMC"
		}
		claimant := foreignHost("provisioned")
		claimant.Spec.BootMACAddress = bootMAC
		objects := lab()
		objects["metal3"] = wanting("m", "a", metav1.Now().Time)
		w := newWorld(t, append(values(objects), copied, claimant)...)
		w.reconcile()
		w.makeImage()
		w.reconcile()
		w.Expect(w.config().Status.DataSecretName).To(BeEmpty(), state)
		w.wants(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.ServerInUseReason)
	}
}

// TestUnsuitableHostDoesNotBlockData: CAPM3 does not assign the host to the Machine.
func TestUnsuitableHostDoesNotBlockData(t *testing.T) {
	for situation, keepOut := range map[string]func(*metal3.Host){
		"labels do not match": func(host *metal3.Host) { host.Labels = map[string]string{"zone": "b"} },
		"unhealthy": func(host *metal3.Host) {
			metav1.SetMetaDataAnnotation(&host.ObjectMeta, "capm3.metal3.io/unhealthy", "")
		},
		"paused": func(host *metal3.Host) {
			metav1.SetMetaDataAnnotation(&host.ObjectMeta, metal3.BlockingAnnotations[0], "")
		},
	} {
		t.Run(situation, func(t *testing.T) {
			copied := freeHost("copied", "a")
			claimant := foreignHost("provisioned")
			claimant.Spec.BootMACAddress = bootMAC
			keepOut(copied)
			objects := lab()
			objects["metal3"] = wanting("m", "a", metav1.Now().Time)
			w := newWorld(t, append(values(objects), copied, claimant)...)
			w.reconcile()
			queue := &late{}
			w.reconciler.hostChanges().Delete(t.Context(), event.DeleteEvent{Object: claimant}, queue)
			w.Expect(queue.at).To(BeEmpty(), "no config waits for the host")
			w.makeImage()
			w.reconcile()
			w.Expect(w.config().Status.DataSecretName).To(Equal("m"))
		})
	}
}
