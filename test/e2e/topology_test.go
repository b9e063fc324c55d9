package e2e

import (
	"context"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift/versionoperator"
)

// updateInPlaceAnnotation names the version to which Cluster API may update workers in place.
const updateInPlaceAnnotation = "bootstrap.cluster.x-k8s.io/update-in-place"

// The cluster has workers that are updated in place, and workers with OnDelete. No upgrade may replace a Machine. Each spec
// starts with the cluster of the former one.
var _ = Describe("A topology with workers", Ordered, Label("upgrade", "topology"), func() {
	const (
		minor, nextMinor, sameKubernetes = "4.20.8", "4.21.3", "4.21.4"
		releaseFirst, outside            = "4.21.8", "4.22.1"
	)
	var cluster *lab.Cluster
	var before *lab.State

	BeforeAll(func(ctx SpecContext) {
		cluster = apply(ctx, "clusterclass", lab.Mutations{
			Namespace: "topology", ClusterName: "topology", ExtraHosts: 4, Edit: inTwoDeployments, Divert: lab.Forward,
		})
		registerExtension(ctx, cluster.Namespace)
		waitAvailable(ctx, cluster)
		expectReconciled(ctx, cluster, installedVersion)
		changeTopologyOf(ctx, cluster, checkWorkers)
		before = state(ctx, cluster)
	}, NodeTimeout(installTimeout))

	AfterEach(func(ctx SpecContext) {
		if before == nil || CurrentSpecReport().Failed() {
			return
		}
		after := state(ctx, cluster)
		for _, m := range before.Machines {
			Expect(has(after, m)).To(BeTrue(), "Machine %s", m.Name)
			Expect(rackHost(m).Losses()).To(BeEmpty(), "host of Machine %s", m.Name)
		}
	}, NodeTimeout(soon))

	It("is upgraded with one change, and gets a worker meanwhile", func(ctx SpecContext) {
		publish(cluster, minor, minors)
		cluster.Versions().Block("machine-config")
		request(ctx, cluster, kubernetesOf(minor), minor, minors)
		waitRollingOut(ctx, cluster, "waiting on machine-config")

		By("reporting the version of the API servers, so that Cluster API sets the version of the workers")
		wait(ctx, cluster, "the version of the API servers", func(s *lab.State) bool {
			return s.ControlPlane.Status.Version == kubernetesOf(minor)
		})
		scaleWorkers(ctx, cluster, onDelete, 2)
		wait(ctx, cluster, "another worker", func(s *lab.State) bool { return len(s.Machines) == len(before.Machines)+1 })
		cluster.Versions().Recover("machine-config")
		expectUpgraded(ctx, cluster, minor)
		wait(ctx, cluster, "complete", func(s *lab.State) bool { return s.Available() && s.Running() == len(before.Machines)+1 })
		expectReconciled(ctx, cluster, minor)
	}, NodeTimeout(2*installTimeout))

	It("is upgraded again, with the version first and the release later", func(ctx SpecContext) {
		machines := len(state(ctx, cluster).Machines)
		publish(cluster, nextMinor, "stable-4.21")
		request(ctx, cluster, kubernetesOf(nextMinor), minor, minors)
		Expect(waitMessage(ctx, cluster, controlplanev1.MachinesUpToDateCondition, kubernetesOf(nextMinor))).
			To(ContainSubstring("distributionVersion"), "the release is missing")
		Expect(requestedUpdate(ctx, cluster)).NotTo(HaveValue(HaveField("Version", nextMinor)))

		By("holding a change of the number of workers until the release is set")
		scaleWorkers(ctx, cluster, onDelete, 3)
		waitPending(ctx, cluster, nextMinor)
		Consistently(ctx, func() []lab.Machine { return state(ctx, cluster).Machines }).WithTimeout(quiet).Should(HaveLen(machines))
		request(ctx, cluster, kubernetesOf(nextMinor), nextMinor, "stable-4.21")
		waitRecovered(ctx, cluster, machines+1)
		expectUpgraded(ctx, cluster, nextMinor)
		expectReconciled(ctx, cluster, nextMinor)
	}, NodeTimeout(2*installTimeout))

	It("is upgraded within one version of Kubernetes by the release alone, which writes no worker", Label("nightly"), func(ctx SpecContext) {
		Expect(kubernetesOf(sameKubernetes)).To(Equal(kubernetesOf(nextMinor)))
		publish(cluster, sameKubernetes, "stable-4.21")
		machines, written := len(state(ctx, cluster).Machines), generations(ctx, cluster)
		cluster.Versions().Block(hostConfigs)
		request(ctx, cluster, kubernetesOf(sameKubernetes), sameKubernetes, "stable-4.21")
		waitRollingOut(ctx, cluster, "waiting on "+hostConfigs)
		expectUnwritten(ctx, cluster, written)

		By("adding a worker meanwhile")
		scaleWorkers(ctx, cluster, inPlace, 2)
		waitRecovered(ctx, cluster, machines+1)
		written = generations(ctx, cluster)
		cluster.Versions().Recover(hostConfigs)
		expectUpgraded(ctx, cluster, sameKubernetes)
		expectReconciled(ctx, cluster, sameKubernetes)
		expectUnwritten(ctx, cluster, written)
	}, NodeTimeout(2*installTimeout))

	It("is upgraded with the release first and the version later, and waits for the version", Label("nightly"), func(ctx SpecContext) {
		publish(cluster, releaseFirst, "stable-4.21")
		request(ctx, cluster, kubernetesOf(sameKubernetes), releaseFirst, "stable-4.21")
		Expect(waitMessage(ctx, cluster, controlplanev1.MachinesUpToDateCondition, kubernetesOf(releaseFirst))).
			To(ContainSubstring("spec.topology.version"), "the version is missing")
		Consistently(ctx, func() *configv1.Update { return requestedUpdate(ctx, cluster) }).WithTimeout(quiet).
			ShouldNot(HaveValue(HaveField("Version", releaseFirst)))
		request(ctx, cluster, kubernetesOf(releaseFirst), releaseFirst, "stable-4.21")
		expectUpgraded(ctx, cluster, releaseFirst)
		expectReconciled(ctx, cluster, releaseFirst)
	}, NodeTimeout(installTimeout))

	It("follows an upgrade that other clients start, reports what to set, and is corrected as documented", Label("nightly"),
		func(ctx SpecContext) {
			publish(cluster, outside, "stable-4.22")
			Expect(cluster.Versions().SetChannel(ctx, "stable-4.22")).To(Succeed())
			Eventually(ctx, func() ([]configv1.Release, error) {
				version, err := cluster.Versions().ClusterVersion(ctx)
				return version.Status.AvailableUpdates, err
			}).Should(ContainElement(HaveField("Version", outside)))
			Expect(cluster.Versions().Request(ctx, &configv1.Update{Version: outside})).To(Succeed())
			waitHistory(ctx, cluster, outside)
			Expect(waitMessage(ctx, cluster, controlplanev1.MachinesUpToDateCondition, kubernetesOf(outside))).To(ContainSubstring(outside))
			Eventually(ctx, func() string { return state(ctx, cluster).ControlPlane.Status.Version }).WithTimeout(soon).
				Should(Equal(kubernetesOf(outside)))

			By("replacing an unhealthy worker before the topology has the version")
			upgraded := state(ctx, cluster)
			lost := workersIn(upgraded, inPlace)[0]
			before.Machines = others(before.Machines, lost)
			loseWorker(ctx, cluster, lost)
			waitRecovered(ctx, cluster, len(upgraded.Machines), lost)

			By("setting the release, and then the version, as documented")
			request(ctx, cluster, kubernetesOf(releaseFirst), outside, "stable-4.22")
			waitMessage(ctx, cluster, controlplanev1.MachinesUpToDateCondition,
				"release "+outside+", which runs, has Kubernetes "+kubernetesOf(outside))
			correctVersion(ctx, cluster, outside)
			expectUpgraded(ctx, cluster, outside)
			expectReconciled(ctx, cluster, outside)
		}, NodeTimeout(2*installTimeout))
})

// A release whose kubelets report a hash is followed by one without. The release images contain no hash.
var _ = Describe("A topology of a release with a hash", Label("upgrade", "nightly"), func() {
	It("is installed with the version of its kubelets, and upgraded to a release without a hash", func(ctx SpecContext) {
		const first, next, channel = "4.16.2", "4.17.0", "stable-4.17"
		onlySimulated()
		Expect(kubernetesOf(first)).To(Equal("v1.29.6+aba1e8d"))
		_, err := laboratory.Registry.Publish(first)
		Expect(err).NotTo(HaveOccurred())
		cluster := apply(ctx, "clusterclass", lab.Mutations{
			Namespace: "topology-hash", ClusterName: "hashed", Divert: lab.Forward,
			Edit: edits(inTwoDeployments, edit("Cluster", kubernetesOf(first), "spec", "topology", "version"),
				func(object *unstructured.Unstructured) {
					if object.GetKind() == "Cluster" {
						editVariable(object, []string{"spec", "topology", "variables"}, func(variable map[string]any) { variable["value"] = first })
					}
				}),
		})
		registerExtension(ctx, cluster.Namespace)
		waitAvailable(ctx, cluster)
		expectReconciled(ctx, cluster, first)
		before := state(ctx, cluster)
		publish(cluster, next, channel)
		request(ctx, cluster, kubernetesOf(next), next, channel)
		expectUpgraded(ctx, cluster, next)
		expectReconciled(ctx, cluster, next)
		expectUnwiped(ctx, cluster, before)
	}, NodeTimeout(3*installTimeout))
})

// inTwoDeployments gives the topology of the sample two MachineDeployments with one Machine each. Cluster API updates the
// second one in place.
func inTwoDeployments(object *unstructured.Unstructured) {
	GinkgoHelper()
	if object.GetKind() != "Cluster" {
		return
	}
	fields := []string{"spec", "topology", "workers", "machineDeployments"}
	deployments, _, err := unstructured.NestedSlice(object.Object, fields...)
	Expect(err).NotTo(HaveOccurred())
	first := deployments[0].(map[string]any)
	first["replicas"] = int64(1)
	second := maps.Clone(first)
	second["name"] = "in-place"
	second["rollout"] = map[string]any{"strategy": map[string]any{
		"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": int64(0), "maxUnavailable": int64(1)},
	}}
	Expect(unstructured.SetNestedSlice(object.Object, []any{first, second}, fields...)).To(Succeed())
}

// request requests a version of Kubernetes and a release with one change of the topology.
func request(ctx context.Context, cluster *lab.Cluster, version, release, channel string) {
	GinkgoHelper()
	changeTopologyOf(ctx, cluster, func(topology *clusterv1.Topology) {
		Expect(lab.RequestRelease(topology, version, release, channel)).To(Succeed())
		for i := range topology.Workers.MachineDeployments {
			deployment := &topology.Workers.MachineDeployments[i]
			if deployment.Rollout.Strategy.Type == clusterv1.RollingUpdateMachineDeploymentStrategyType {
				deployment.Metadata.Annotations = map[string]string{updateInPlaceAnnotation: version}
			}
		}
	})
}

// correctVersion sets the version of a topology whose cluster was upgraded outside, as docs/operations/upgrading.md describes.
func correctVersion(ctx context.Context, cluster *lab.Cluster, release string) {
	GinkgoHelper()
	version, object := kubernetesOf(release), state(ctx, cluster).Cluster
	change := func(text string) { patch(ctx, object.DeepCopy(), text) }

	By("pausing the Cluster")
	change(`{"spec":{"paused":true}}`)
	wait(ctx, cluster, "a paused topology", func(s *lab.State) bool {
		return lab.Condition(s.Cluster.Status.Conditions, clusterv1.ClusterTopologyReconciledCondition).Reason == clusterv1.PausedReason
	})

	By("setting OnDelete, and then the version, in each MachineDeployment")
	changeTopologyOf(ctx, cluster, func(topology *clusterv1.Topology) {
		for i := range topology.Workers.MachineDeployments {
			topology.Workers.MachineDeployments[i].Rollout.Strategy = clusterv1.MachineDeploymentTopologyRolloutStrategy{
				Type: clusterv1.OnDeleteMachineDeploymentStrategyType,
			}
		}
	})
	deployments := deploymentsOf(ctx, NewGomega(Fail), cluster)
	Expect(deployments).To(HaveLen(2))
	for _, patched := range []string{
		`{"spec":{"rollout":{"strategy":{"type":"OnDelete","rollingUpdate":null}}}}`,
		`{"spec":{"template":{"spec":{"version":"` + version + `"}}}}`,
	} {
		for i := range deployments {
			patch(ctx, deployments[i].DeepCopy(), patched)
		}
	}
	changeSpec(ctx, cluster, `{"version":"`+version+`"}`)

	By("setting the version of the topology, and ending the pause")
	const unchecked = "unsafe.topology.cluster.x-k8s.io/disable-update-version-check"
	change(`{"metadata":{"annotations":{"` + unchecked + `":""}}}`)
	changeTopologyOf(ctx, cluster, func(topology *clusterv1.Topology) { topology.Version = version })
	change(`{"spec":{"paused":false}}`)
	expectReconciled(ctx, cluster, release)
	change(`{"metadata":{"annotations":{"` + unchecked + `":null}}}`)
}

// scaleWorkers sets the number of Machines of a MachineDeployment in a topology.
func scaleWorkers(ctx context.Context, cluster *lab.Cluster, deployment string, replicas int32) {
	GinkgoHelper()
	changeTopologyOf(ctx, cluster, func(topology *clusterv1.Topology) {
		for i := range topology.Workers.MachineDeployments {
			if topology.Workers.MachineDeployments[i].Name == deployment {
				topology.Workers.MachineDeployments[i].Replicas = &replicas
				return
			}
		}
		Fail("the topology has no MachineDeployment " + deployment)
	})
}

// waitPending waits until Cluster API reports that a topology waits for the version of a release.
func waitPending(ctx context.Context, cluster *lab.Cluster, release string) {
	GinkgoHelper()
	Eventually(ctx, func() metav1.Condition {
		return lab.Condition(state(ctx, cluster).Cluster.Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)
	}).WithTimeout(soon).Should(And(HaveField("Status", metav1.ConditionFalse),
		HaveField("Message", ContainSubstring("pending upgrade to version "+kubernetesOf(release)))))
}

// changeTopologyOf changes the topology of a cluster. Cluster API refuses a version while workers are upgraded.
func changeTopologyOf(ctx context.Context, cluster *lab.Cluster, change func(*clusterv1.Topology)) {
	GinkgoHelper()
	Eventually(ctx, func() error {
		return cluster.ChangeTopology(ctx, func(topology *clusterv1.Topology) error {
			change(topology)
			return nil
		})
	}).WithTimeout(soon).Should(Succeed())
}

// waitMessage waits until a condition of the control plane is False with a text, and returns its message.
func waitMessage(ctx context.Context, cluster *lab.Cluster, condition, text string) string {
	GinkgoHelper()
	reported := func() metav1.Condition {
		return lab.Condition(state(ctx, cluster).ControlPlane.Status.Conditions, condition)
	}
	Eventually(ctx, reported).WithTimeout(soon).Should(And(HaveField("Status", metav1.ConditionFalse),
		HaveField("Message", ContainSubstring(text))))
	return reported().Message
}

// expectReconciled waits until Cluster API has upgraded all workers of a topology, and the version of each Machine is that of
// its kubelet.
func expectReconciled(ctx context.Context, cluster *lab.Cluster, release string) {
	GinkgoHelper()
	version := kubernetesOf(release)
	Eventually(ctx, func(g Gomega) {
		s, err := cluster.State(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		// A topology does not watch Machines: it is reconciled when one of its objects changes, or after ten minutes.
		patch(ctx, s.Cluster.DeepCopy(), `{"metadata":{"annotations":{"laboratory/look-again":"`+time.Now().String()+`"}}}`)
		g.Expect(lab.Condition(s.Cluster.Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)).
			To(HaveField("Status", metav1.ConditionTrue))
		for _, m := range s.Machines {
			g.Expect(m.Spec.Version).To(Equal(version), m.Name)
			g.Expect(m.Status.NodeInfo).To(HaveValue(HaveField("KubeletVersion", version)), m.Name)
		}
		for _, deployment := range deploymentsOf(ctx, g, cluster) {
			g.Expect(deployment.Spec.Template.Spec.Version).To(Equal(version), deployment.Name)
			if deployment.Spec.Rollout.Strategy.Type == clusterv1.RollingUpdateMachineDeploymentStrategyType {
				g.Expect(deployment.Status.UpToDateReplicas).To(HaveValue(Equal(*deployment.Spec.Replicas)), deployment.Name)
			}
		}
	}).WithTimeout(installTimeout).Should(Succeed())
}

func deploymentsOf(ctx context.Context, g Gomega, cluster *lab.Cluster) []clusterv1.MachineDeployment {
	GinkgoHelper()
	list := &clusterv1.MachineDeploymentList{}
	g.Expect(laboratory.Client().List(ctx, list, client.InNamespace(cluster.Namespace))).To(Succeed())
	g.Expect(list.Items).NotTo(BeEmpty())
	return list.Items
}

// generations returns the generations of all MachineDeployments, MachineSets and Machines of a cluster: the writes of their
// specs.
func generations(ctx context.Context, cluster *lab.Cluster) map[string]int64 {
	GinkgoHelper()
	found := map[string]int64{}
	for _, list := range []client.ObjectList{&clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}, &clusterv1.MachineList{}} {
		Expect(laboratory.Client().List(ctx, list, client.InNamespace(cluster.Namespace))).To(Succeed())
		switch items := list.(type) {
		case *clusterv1.MachineDeploymentList:
			for _, o := range items.Items {
				found["MachineDeployment "+o.Name] = o.Generation
			}
		case *clusterv1.MachineSetList:
			for _, o := range items.Items {
				found["MachineSet "+o.Name] = o.Generation
			}
		case *clusterv1.MachineList:
			for _, o := range items.Items {
				found["Machine "+o.Name] = o.Generation
			}
		}
	}
	return found
}

// expectUnwritten checks that no spec of a MachineDeployment, MachineSet or Machine was written. Cluster API may delete a
// MachineSet of an old version.
func expectUnwritten(ctx context.Context, cluster *lab.Cluster, written map[string]int64) {
	GinkgoHelper()
	for name, generation := range generations(ctx, cluster) {
		Expect(written).To(HaveKeyWithValue(name, generation))
	}
}

// A chain of versions needs paused workers: OpenShift would update them to a version that their MachineDeployments never get.
var _ = Describe("A topology whose workers are paused", Label("upgrade", "nightly"), func() {
	const first, between, last, channel = "4.18.5", "4.19.10", "4.20.8", "eus-4.20"
	// install installs a cluster in a namespace, with both upgrades on offer.
	install := func(ctx SpecContext, namespace string) (cluster *lab.Cluster, before *lab.State) {
		GinkgoHelper()
		onlySimulated()
		_, err := laboratory.Registry.Publish(first)
		Expect(err).NotTo(HaveOccurred())
		cluster = apply(ctx, "clusterclass", lab.Mutations{
			Namespace: namespace, ClusterName: namespace, Edit: chained(first, between, last), Divert: lab.Forward,
		})
		waitAvailable(ctx, cluster)
		publish(cluster, between, channel)
		publish(cluster, last, channel)
		Expect(cluster.Versions().SetChannel(ctx, channel)).To(Succeed())
		return cluster, state(ctx, cluster)
	}

	It("is upgraded over two minor versions with one change, and restarts its workers once", func(ctx SpecContext) {
		cluster, before := install(ctx, "chain")
		boots := bootCounts(before)
		Expect(cluster.Versions().PausePool(ctx, versionoperator.WorkerPool, true)).To(Succeed())
		changeTopologyOf(ctx, cluster, func(topology *clusterv1.Topology) { topology.Version = kubernetesOf(last) })
		expectUpgraded(ctx, cluster, last)
		expectBoots(ctx, cluster, boots, 2, 0)
		Expect(cluster.Versions().PausePool(ctx, versionoperator.WorkerPool, false)).To(Succeed())
		expectReconciled(ctx, cluster, last)
		expectUnwiped(ctx, cluster, before)
		expectBoots(ctx, cluster, boots, 2, 1)
	}, NodeTimeout(3*installTimeout))

	It("is paused and resumed by the provider if the user permits that", func(ctx SpecContext) {
		cluster, before := install(ctx, "chain-pauses")
		boots := bootCounts(before)
		changeTopologyOf(ctx, cluster, func(topology *clusterv1.Topology) { topology.Version = kubernetesOf(last) })
		Expect(waitMessage(ctx, cluster, controlplanev1.MachinesUpToDateCondition, "pauseWorkerPools")).
			To(ContainSubstring(versionoperator.WorkerPool))

		changeSpec(ctx, cluster, `{"upgrade":{"pauseWorkerPools":"DuringChain"}}`)
		wait(ctx, cluster, "a paused pool", func(s *lab.State) bool {
			return slices.Contains(s.ControlPlane.Status.PausedPools, versionoperator.WorkerPool)
		})
		kill(ctx)
		expectUpgraded(ctx, cluster, last)
		wait(ctx, cluster, "no paused pool", func(s *lab.State) bool { return len(s.ControlPlane.Status.PausedPools) == 0 })
		expectReconciled(ctx, cluster, last)
		expectUnwiped(ctx, cluster, before)
		expectBoots(ctx, cluster, boots, 2, 1)
	}, NodeTimeout(3*installTimeout))
})

// chained lets the ClusterClass of the sample upgrade along these releases: a variable maps versions of Kubernetes to
// releases. The cluster begins with the first one.
func chained(releases ...string) func(*unstructured.Unstructured) {
	GinkgoHelper()
	ofVersions, versions := map[string]any{}, []any{}
	for _, release := range releases {
		version := kubernetesOf(release)
		ofVersions[version] = release
		versions = append(versions, version)
	}
	return edits(
		edit("Cluster", versions[0], "spec", "topology", "version"),
		func(object *unstructured.Unstructured) {
			GinkgoHelper()
			switch object.GetKind() {
			case "Cluster":
				editRelease(object, []string{"spec", "topology", "variables"}, func(variable map[string]any) { variable["value"] = ofVersions })
			case "ClusterClass":
				Expect(unstructured.SetNestedSlice(object.Object, versions, "spec", "kubernetesVersions")).To(Succeed())
				editRelease(object, []string{"spec", "variables"}, func(variable map[string]any) {
					variable["schema"] = map[string]any{"openAPIV3Schema": map[string]any{
						"type": "object", "additionalProperties": map[string]any{"type": "string"},
					}}
				})
				chainPatch(object)
			}
		},
	)
}

// editRelease replaces the variable distributionVersion in a list of variables with the variable releases.
func editRelease(object *unstructured.Unstructured, fields []string, change func(variable map[string]any)) {
	GinkgoHelper()
	editVariable(object, fields, func(variable map[string]any) {
		variable["name"] = "releases"
		change(variable)
	})
}

// editVariable changes the variable distributionVersion in a list of variables.
func editVariable(object *unstructured.Unstructured, fields []string, change func(variable map[string]any)) {
	GinkgoHelper()
	variables, _, err := unstructured.NestedSlice(object.Object, fields...)
	Expect(err).NotTo(HaveOccurred())
	for _, variable := range variables {
		if v := variable.(map[string]any); v["name"] == "distributionVersion" {
			change(v)
		}
	}
	Expect(unstructured.SetNestedSlice(object.Object, variables, fields...)).To(Succeed())
}

// chainPatch lets the patch of the release select the release of each version, as docs/operations/upgrading.md describes.
func chainPatch(class *unstructured.Unstructured) {
	GinkgoHelper()
	patches, _, err := unstructured.NestedSlice(class.Object, "spec", "patches")
	Expect(err).NotTo(HaveOccurred())
	for _, patch := range patches {
		for _, definition := range patch.(map[string]any)["definitions"].([]any) {
			for _, change := range definition.(map[string]any)["jsonPatches"].([]any) {
				if c := change.(map[string]any); c["path"] == "/spec/template/spec/distributionVersion" {
					c["valueFrom"] = map[string]any{"template": `{{ (index .releases .builtin.controlPlane.version) | quote }}`}
				}
			}
		}
	}
	Expect(unstructured.SetNestedSlice(class.Object, patches, "spec", "patches")).To(Succeed())
}
