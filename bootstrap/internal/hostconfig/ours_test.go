package hostconfig

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube/kubetest"
)

// notOurs are cases in which the objects of a cluster in assisted-service do not belong to the Machine's
// Cluster.
var notOurs = map[string]struct {
	change  func(w *world, deployment *hivev1.ClusterDeployment, install *hiveext.AgentClusterInstall)
	reason  string
	message string
}{
	"the ClusterDeployment is another Cluster's": {func(w *world, d *hivev1.ClusterDeployment, _ *hiveext.AgentClusterInstall) {
		w.change(d, func() { d.Labels[clusterv1.ClusterNameLabel] = "another-cluster" })
	}, bootstrapv1.ClusterDeploymentNotOursReason, "ClusterDeployment cp does not belong to Cluster c but to Cluster another-cluster"},
	"the AgentClusterInstall is another control plane's": {func(w *world, _ *hivev1.ClusterDeployment, i *hiveext.AgentClusterInstall) {
		w.change(i, func() { i.Labels[clusterv1.MachineControlPlaneNameLabel] = "another" })
	}, bootstrapv1.ClusterDeploymentNotOursReason, "AgentClusterInstall cp does not belong to Cluster c but to control plane another"},
	"the ClusterDeployment is a former Cluster's of the same name": {func(w *world, d *hivev1.ClusterDeployment,
		_ *hiveext.AgentClusterInstall,
	) {
		w.change(d, func() { d.Annotations[contract.ClusterUIDAnnotation] = "former" })
	}, bootstrapv1.ClusterDeploymentNotOursReason, "but to a former Cluster c (UID former)"},
	"the labels were removed": {func(w *world, d *hivev1.ClusterDeployment, _ *hiveext.AgentClusterInstall) {
		w.change(d, func() { d.Labels = nil })
	}, bootstrapv1.WaitingForClusterDeploymentReason, "ClusterDeployment cp lacks the labels of Cluster c"},
	"the ClusterDeployment is being deleted": {func(w *world, d *hivev1.ClusterDeployment, _ *hiveext.AgentClusterInstall) {
		w.change(d, func() { d.Finalizers = []string{"x/y"} })
		w.remove(d)
	}, bootstrapv1.WaitingForClusterDeploymentReason, "ClusterDeployment cp of Cluster c is being deleted"},
	"the AgentClusterInstall is being deleted": {func(w *world, _ *hivev1.ClusterDeployment, i *hiveext.AgentClusterInstall) {
		w.change(i, func() { i.Finalizers = []string{"x/y"} })
		w.remove(i)
	}, bootstrapv1.WaitingForClusterDeploymentReason, "AgentClusterInstall cp of Cluster c is being deleted"},
	"the AgentClusterInstall does not exist": {func(w *world, _ *hivev1.ClusterDeployment, i *hiveext.AgentClusterInstall) {
		w.remove(i)
	}, bootstrapv1.WaitingForAgentClusterInstallReason, "waiting for AgentClusterInstall cp"},
}

// TestUnregisteredClusterGetsNoImage: a cluster that assisted-service rejects, or has not registered yet, has
// no hosts. Its hosts would be powered on in vain.
func TestUnregisteredClusterGetsNoImage(t *testing.T) {
	w := newWorld(t, values(lab())...)
	_, install := w.registration()
	w.setState(install, "")
	w.reconcile()
	err := w.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "m"}, &aiv1beta1.InfraEnv{})
	w.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "no host can boot its image")
	w.lasts(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.WaitingForAgentClusterInstallReason)
	w.Expect(w.message(bootstrapv1.DiscoveryImageReadyCondition)).To(ContainSubstring("assisted-service has not registered the cluster of " +
		"AgentClusterInstall cp: see condition Installed of OpenshiftAssistedControlPlane cp"))
	w.setState(install, "insufficient")
	w.reconcile()
	w.Expect(w.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "m"}, &aiv1beta1.InfraEnv{})).To(Succeed())
}

// TestHostWithImageNeedsNoState: assisted-service clears the state temporarily, for example without its
// database. A host that has its image keeps all it has.
func TestHostWithImageNeedsNoState(t *testing.T) {
	w := booted(t)
	_, install := w.registration()
	w.setState(install, "")
	w.reconcile()
	w.lasts(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionTrue, bootstrapv1.DiscoveryImageReadyCondition)
}

// registration returns the objects of the cluster in assisted-service.
func (w *world) registration() (*hivev1.ClusterDeployment, *hiveext.AgentClusterInstall) {
	w.t.Helper()
	return read(w, "cp", &hivev1.ClusterDeployment{}), read(w, "cp", &hiveext.AgentClusterInstall{})
}

// TestForeignClusterGetsNoImage: no server is powered on for a foreign or partly unknown cluster. No image
// gets its pull secret, mirrors or release.
func TestForeignClusterGetsNoImage(t *testing.T) {
	for situation, tc := range notOurs {
		t.Run(situation, func(t *testing.T) {
			w := newWorld(t, values(lab())...)
			deployment, install := w.registration()
			tc.change(w, deployment, install)
			w.reconcile()
			err := w.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "m"}, &aiv1beta1.InfraEnv{})
			w.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "no host can boot its image")
			w.lasts(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, tc.reason)
			w.Expect(w.message(bootstrapv1.DiscoveryImageReadyCondition)).To(ContainSubstring(tc.message))
		})
	}
}

func TestForeignClusterGetsNoBoundHost(t *testing.T) {
	for situation, tc := range notOurs {
		t.Run(situation, func(t *testing.T) {
			w := booted(t)
			deployment, install := w.registration()
			tc.change(w, deployment, install)
			w.create(discovered("a", "m", bootMAC))
			w.reconcile()
			w.Expect(w.agent("a").Spec.ClusterDeploymentName).To(BeNil())
		})
	}
}

func TestForeignClusterGetsNoApprovedHost(t *testing.T) {
	for situation, tc := range notOurs {
		t.Run(situation, func(t *testing.T) {
			w := booted(t)
			w.create(discovered("a", "m", bootMAC))
			w.reconcile()
			w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil())
			deployment, install := w.registration()
			tc.change(w, deployment, install)
			w.registerWithCluster("a", "known")
			w.reconcile()
			w.Expect(w.agent("a").Spec.Approved).To(BeFalse())
			w.restart()
			w.reconcile()
			w.Expect(w.agent("a").Spec.Approved).To(BeFalse(), "still not approved")
		})
	}
}

// TestLiveReadsBeforeBindingAndApproval: the cache does not contain a recent deletion or replacement yet.
// Here the ClusterDeployment changes after it was read.
func TestLiveReadsBeforeBindingAndApproval(t *testing.T) {
	for situation, tc := range notOurs {
		for _, step := range []string{"bound", "approved"} {
			t.Run(situation+", before it is "+step, func(t *testing.T) {
				w := booted(t)
				deployment, install := w.registration()
				w.create(discovered("a", "m", bootMAC))
				if step == "approved" {
					w.reconcile()
					w.registerWithCluster("a", "known")
				}
				w.listing = func() {
					w.listing = nil
					tc.change(w, deployment, install)
				}
				w.reconcile()
				w.Expect(w.listing).To(BeNil())
				w.Expect(w.agent("a").Spec.Approved).To(BeFalse())
				stage := bootstrapv1.HostApprovedCondition
				if step == "bound" {
					w.Expect(w.agent("a").Spec.ClusterDeploymentName).To(BeNil())
					stage = bootstrapv1.HostBoundCondition
				}
				w.Expect(w.message(stage)).To(Or(ContainSubstring(tc.message), BeEmpty()), "a wait is reported when it lasts")
			})
		}
	}
}

// TestInstallationOfApprovedHostIsReportedToTheEnd, independent of the ClusterDeployment.
func TestInstallationOfApprovedHostIsReportedToTheEnd(t *testing.T) {
	w := installing(t)
	deployment, _ := w.registration()
	w.change(deployment, func() { deployment.Labels = nil })
	w.enter("a", "installed")
	w.reconcile()
	w.Expect(w.message(bootstrapv1.DiscoveryImageReadyCondition)).To(BeEmpty())
	w.wants(bootstrapv1.HostInstalledCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason)
}

// TestImageHasMirrorsOfCluster: the InfraEnv of a worker is created before the AgentClusterInstall, which was
// rejected at first. The worker would boot without the mirrors of the cluster.
func TestImageHasMirrorsOfCluster(t *testing.T) {
	objects := lab()
	install := objects["install"].(*hiveext.AgentClusterInstall) //nolint:forcetypeassert // lab creates it
	install.Spec.MirrorRegistryRef = &hiveext.MirrorRegistryConfigMapReference{Name: "mirrors", Namespace: namespace}
	delete(objects, "install")
	w := newWorld(t, values(objects)...)
	w.reconcile()
	w.lasts(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.WaitingForAgentClusterInstallReason)
	w.create(install)
	w.reconcile()
	w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).Spec.MirrorRegistryRef).To(Equal(install.Spec.MirrorRegistryRef))
}

// foreignInfraEnvs are InfraEnvs with the name of the Machine and the label of its config that are foreign.
var foreignInfraEnvs = map[string]struct {
	change  func(infraEnv *aiv1beta1.InfraEnv)
	message string
}{
	"of another Cluster": {
		func(e *aiv1beta1.InfraEnv) { e.Labels[clusterv1.ClusterNameLabel] = "another" },
		"it belongs to Cluster another",
	},
	"of another config": {
		func(e *aiv1beta1.InfraEnv) { e.Labels[bootstrapv1.ConfigNameLabel] = "another" },
		"it serves OpenshiftAssistedConfig another",
	},
	"created by another client": {func(*aiv1beta1.InfraEnv) {}, "another client created it"},
}

func foreignInfraEnv(name string, change func(*aiv1beta1.InfraEnv)) *aiv1beta1.InfraEnv {
	infraEnv := &aiv1beta1.InfraEnv{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: "foreign",
		Labels: map[string]string{clusterv1.ClusterNameLabel: "c", bootstrapv1.ConfigNameLabel: "m"},
	}}
	infraEnv.Spec.SSHAuthorizedKey = "theirs"
	change(infraEnv)
	return infraEnv
}

func TestForeignInfraEnvIsNeitherWrittenNorDeleted(t *testing.T) {
	for whose, tc := range foreignInfraEnvs {
		for _, seen := range []bool{true, false} { // in the cache
			t.Run(whose, func(t *testing.T) {
				theirs := foreignInfraEnv("m", tc.change)
				w := newWorld(t, append(values(lab()), theirs)...)
				if !seen {
					w.cache.Client = kubetest.EmptyCacheOf[*aiv1beta1.InfraEnv, *aiv1beta1.InfraEnvList](w.cache.Client)
				}
				w.create(discovered("a", "m", bootMAC), bareMetalHost())
				w.reconcile()
				w.wants(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.InfraEnvNotOursReason)
				w.Expect(w.message(bootstrapv1.DiscoveryImageReadyCondition)).To(ContainSubstring(tc.message))
				w.restart()
				w.reconcile()
				w.remove(read(w, "m", &clusterv1.Machine{}))
				w.remove(w.config())
				w.reconcile()
				w.reconcile()
				w.Expect(w.gone("m", &bootstrapv1.OpenshiftAssistedConfig{})).To(BeTrue(), "its deletion does not wait for the InfraEnv")
				kept := read(w, "m", &aiv1beta1.InfraEnv{})
				w.Expect(kept.DeletionTimestamp).To(BeNil())
				w.Expect(kept.Spec).To(Equal(theirs.Spec))
				w.Expect(kept.Labels).To(Equal(theirs.Labels))
				w.Expect(w.agent("a").DeletionTimestamp).To(BeNil())
				w.Expect(w.agent("a").Spec.Approved).To(BeFalse())
			})
		}
	}
}

// TestInfraEnvOfFormerClusterIsForeign: a Machine of a former Cluster left the InfraEnv behind, and both
// Machines have one name.
func TestInfraEnvOfFormerClusterIsForeign(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
	w.Expect(infraEnv.Annotations).To(HaveKeyWithValue(contract.ClusterUIDAnnotation, "cluster-uid"))
	w.change(infraEnv, func() { infraEnv.Annotations[contract.ClusterUIDAnnotation] = "former" })
	w.restart()
	w.reconcile()
	w.wants(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.InfraEnvNotOursReason)
	w.Expect(w.message(bootstrapv1.DiscoveryImageReadyCondition)).To(ContainSubstring("it belongs to a former Cluster c (UID former)"))
}

// TestForeignInfraEnvOfChosenHostCanBeRestored: the deletion of the Machine would wipe its host, so that the message names
// every label and annotation that makes the InfraEnv ours again.
func TestForeignInfraEnvOfChosenHostCanBeRestored(t *testing.T) {
	const configLabel, clusterLabel = bootstrapv1.ConfigNameLabel, clusterv1.ClusterNameLabel
	for situation, tc := range map[string]struct {
		change func(*aiv1beta1.InfraEnv)
		advice string
	}{
		"records a former Cluster": {
			func(e *aiv1beta1.InfraEnv) { e.Annotations[contract.ClusterUIDAnnotation] = "former" },
			"Only if Cluster c was restored or moved, set its annotation " + contract.ClusterUIDAnnotation +
				"=cluster-uid: a server of the former Cluster would be removed from its cluster. ",
		},
		"records no Cluster": {
			func(e *aiv1beta1.InfraEnv) { delete(e.Annotations, contract.ClusterUIDAnnotation) },
			"If it was created for Machine m, set its annotation " + contract.ClusterUIDAnnotation + "=cluster-uid. ",
		},
		"no labels and annotations": {
			func(e *aiv1beta1.InfraEnv) { e.Labels, e.Annotations = nil, nil },
			"set its label " + configLabel + "=m, label " + clusterLabel + "=c, annotation " + contract.ClusterUIDAnnotation + "=cluster-uid. ",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			w := newWorld(t, values(lab())...)
			w.reconcile()
			w.create(bareMetalHost())
			restored := read(w, "m", &aiv1beta1.InfraEnv{})
			marks := restored.DeepCopy()
			w.remove(restored)
			restored.ManagedFields, restored.ResourceVersion = nil, ""
			tc.change(restored)
			w.create(restored)
			w.restart()
			w.reconcile()
			w.wants(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.InfraEnvNotOursReason)
			w.Expect(w.message(bootstrapv1.DiscoveryImageReadyCondition)).To(And(ContainSubstring(tc.advice),
				ContainSubstring("would wipe its host")))

			restored = read(w, "m", &aiv1beta1.InfraEnv{})
			w.change(restored, func() { restored.Labels, restored.Annotations = marks.Labels, marks.Annotations })
			w.reconcile()
			w.wants(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.WaitingForDiscoveryImageReason)
		})
	}
}

// A user who sets the labels of the config on the InfraEnv of another owner removes the servers of that owner from their
// cluster. Labels change nothing if spec.clusterRef or an owner reference makes the InfraEnv foreign.
func TestNoLabelsAreAdvisedForInfraEnvOfAnotherOwner(t *testing.T) {
	for situation, tc := range map[string]struct {
		change func(*aiv1beta1.InfraEnv)
		owner  string
	}{
		"another Cluster": {func(e *aiv1beta1.InfraEnv) {
			e.Labels[clusterv1.ClusterNameLabel], e.Labels[bootstrapv1.ConfigNameLabel] = "prod", "x"
			e.Annotations = map[string]string{contract.ClusterUIDAnnotation: "prod-uid"}
		}, "it belongs to Cluster prod. "},
		"another control plane": {func(e *aiv1beta1.InfraEnv) {
			e.Labels[clusterv1.MachineControlPlaneNameLabel] = "another"
		}, "it belongs to control plane another. "},
		"another config": {func(e *aiv1beta1.InfraEnv) {
			e.Labels[bootstrapv1.ConfigNameLabel] = "x"
		}, "it serves OpenshiftAssistedConfig x. "},
		"serves a ClusterDeployment": {func(e *aiv1beta1.InfraEnv) {
			e.Spec.ClusterRef = &aiv1beta1.ClusterReference{Namespace: namespace, Name: "another"}
		}, "it serves ClusterDeployment another by spec.clusterRef. "},
		"has an owner": {func(e *aiv1beta1.InfraEnv) {
			e.OwnerReferences = []metav1.OwnerReference{{Kind: "ClusterInstance", Name: "site1"}}
		}, "it belongs to ClusterInstance site1. "},
	} {
		t.Run(situation, func(t *testing.T) {
			w := newWorld(t, append(values(lab()), foreignInfraEnv("m", tc.change))...)
			w.create(bareMetalHost())
			w.reconcile()
			w.wants(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.InfraEnvNotOursReason)
			message := w.message(bootstrapv1.DiscoveryImageReadyCondition)
			w.Expect(message).To(And(ContainSubstring(tc.owner), ContainSubstring("would wipe its host"), Not(ContainSubstring("set its"))))
		})
	}
}

// A backup restores the InfraEnv of a former Machine with the same name. Its server still runs.
func TestMarkedInfraEnvIsForeignUntilAHostIsChosen(t *testing.T) {
	w := newWorld(t, append(values(lab()), foreignInfraEnv("m", func(e *aiv1beta1.InfraEnv) {
		e.Annotations = map[string]string{contract.ClusterUIDAnnotation: "cluster-uid"}
	}))...)
	w.create(discovered("a", "m", "52:54:00:99:99:99"))
	w.reconcile()
	w.reconcile()
	w.wants(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.InfraEnvNotOursReason)
	w.remove(read(w, "m", &clusterv1.Machine{}))
	w.remove(w.config())
	for range 3 {
		w.reconcile()
	}
	w.Expect(w.gone("m", &bootstrapv1.OpenshiftAssistedConfig{})).To(BeTrue())
	w.Expect(read(w, "m", &aiv1beta1.InfraEnv{}).DeletionTimestamp).To(BeNil())
	w.Expect(w.agent("a").DeletionTimestamp).To(BeNil())
}

// TestMarkedInfraEnvOfAnotherClientIsForeign: an InfraEnv with all labels and annotations is foreign if it
// serves a ClusterDeployment or has another owner.
func TestMarkedInfraEnvOfAnotherClientIsForeign(t *testing.T) {
	for situation, change := range map[string]func(*aiv1beta1.InfraEnv){
		"serves a ClusterDeployment": func(e *aiv1beta1.InfraEnv) {
			e.Spec.ClusterRef = &aiv1beta1.ClusterReference{Namespace: namespace, Name: "another"}
		},
		"has an owner": func(e *aiv1beta1.InfraEnv) {
			e.OwnerReferences = []metav1.OwnerReference{{Kind: "ClusterInstance", Name: "site1"}}
		},
	} {
		t.Run(situation, func(t *testing.T) {
			w := newWorld(t, append(values(lab()), foreignInfraEnv("m", func(e *aiv1beta1.InfraEnv) {
				e.Annotations = map[string]string{contract.ClusterUIDAnnotation: "cluster-uid"}
				change(e)
			}))...)
			w.create(bareMetalHost())
			w.reconcile()
			w.wants(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionFalse, bootstrapv1.InfraEnvNotOursReason)
			w.Expect(w.message(bootstrapv1.DiscoveryImageReadyCondition)).NotTo(ContainSubstring("set its"))
		})
	}
}

// TestRestoredInfraEnvIsOurs: a restore changes the UID of the Cluster, and loses the field managers of the
// InfraEnv.
func TestRestoredInfraEnvIsOurs(t *testing.T) {
	w := booted(t)
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.registerWithCluster("a", "known")
	w.reconcile()
	infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
	w.remove(infraEnv)
	infraEnv.ManagedFields, infraEnv.ResourceVersion, infraEnv.Annotations[contract.ClusterUIDAnnotation] = nil, "", "former"
	w.create(infraEnv)
	w.restart()
	w.reconcile()
	w.wants(bootstrapv1.DiscoveryImageReadyCondition, metav1.ConditionTrue, bootstrapv1.DiscoveryImageReadyReason)
	w.Expect(w.agent("a").Spec.ClusterDeploymentName).NotTo(BeNil(), "its Agent counts")
	w.remove(read(w, "m", &clusterv1.Machine{}))
	w.remove(w.config())
	w.reconcile()
	w.reconcile()
	w.Expect(w.gone("m", &aiv1beta1.InfraEnv{})).To(BeTrue())
}

// TestCopyOfInfraEnvIsKept: a copy has the label that selects the InfraEnvs of a config. The copy and its
// Agents stay when the config is deleted.
func TestCopyOfInfraEnvIsKept(t *testing.T) {
	for situation, change := range map[string]func(*aiv1beta1.InfraEnv){
		"alone": func(*aiv1beta1.InfraEnv) {},
		"with a ClusterDeployment": func(e *aiv1beta1.InfraEnv) {
			e.Spec.ClusterRef = &aiv1beta1.ClusterReference{Namespace: namespace, Name: "another"}
		},
	} {
		t.Run(situation, func(t *testing.T) {
			w := booted(t)
			w.create(foreignInfraEnv("copy", change), discovered("theirs", "copy", "52:54:00:00:00:99"))
			w.create(discovered("a", "m", bootMAC))
			w.reconcile()
			w.remove(read(w, "m", &clusterv1.Machine{}))
			w.remove(w.config())
			for range 3 {
				w.reconcile()
			}
			w.Expect(w.gone("m", &aiv1beta1.InfraEnv{})).To(BeTrue())
			w.Expect(w.gone("m", &bootstrapv1.OpenshiftAssistedConfig{})).To(BeTrue())
			w.Expect(read(w, "copy", &aiv1beta1.InfraEnv{}).DeletionTimestamp).To(BeNil())
			w.Expect(w.agent("theirs").DeletionTimestamp).To(BeNil())
		})
	}
}
