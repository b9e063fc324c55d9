package gather

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	// maxLines is the number of lines of one log.
	maxLines = 30_000
	// maxPods is the number of Pods whose logs are read.
	maxPods = 60
	// logTimeout is the time for one log. It also bounds a log that grows faster than its lines are read.
	logTimeout = time.Minute
)

// addLogs adds the logs and Pods of the managers.
func (g *gatherer) addLogs(ctx context.Context) error {
	g.step("logs of the managers")
	count := 0
	for _, w := range g.workloads(ctx) {
		pods, err := g.podsOf(ctx, w)
		if err != nil {
			g.gap("Pods of "+w.String(), err)
		}
		for i := range pods {
			if count++; count > maxPods {
				g.gap("logs of further Pods", fmt.Errorf("more than %d Pods of managers exist", maxPods))
				return nil
			}
			if err := context.Cause(ctx); err != nil {
				g.gap("logs of further Pods", err)
				return nil
			}
			if err := g.addPod(ctx, w, &pods[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// podsOf returns the Pods that the selector of a workload selects.
func (g *gatherer) podsOf(ctx context.Context, w workload) ([]unstructured.Unstructured, error) {
	if len(w.selector) == 0 {
		return nil, errors.New("the selector has no labels")
	}
	return g.list(ctx, kind{name: "Pod"}, "v1", client.InNamespace(w.namespace), client.MatchingLabels(w.selector))
}

// addPod adds a Pod and the logs of its containers.
func (g *gatherer) addPod(ctx context.Context, w workload, o *unstructured.Unstructured) error {
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, pod); err != nil {
		g.gap("Pod "+o.GetName(), err)
		return nil
	}
	g.redactor.Learn(o.Object)
	g.redactor.Object(o.Object)
	content, err := yaml.Marshal(o.Object)
	if err != nil {
		return fmt.Errorf("cannot write Pod %s: %w", o.GetName(), err)
	}
	title := w.component + ": " + pod.Name
	if _, err := g.addFile(title, string(content), "logs", w.component, pod.Name, "pod.yaml"); err != nil {
		return err
	}
	for _, c := range append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...) {
		if err := g.addLog(ctx, w, pod, c.Name, false); err != nil {
			return err
		}
		if c.RestartCount > 0 {
			if err := g.addLog(ctx, w, pod, c.Name, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// addLog adds the log of a container, or of its previous instance.
func (g *gatherer) addLog(ctx context.Context, w workload, pod *corev1.Pod, container string, previous bool) error {
	title, file := w.component+": "+pod.Name+" "+container, container+".log"
	// LimitBytes would count from the first of the newest lines, and cut off the newest of them.
	options := &corev1.PodLogOptions{Container: container, Previous: previous, Timestamps: true, TailLines: ptr.To[int64](maxLines)}
	if !previous && g.Since > 0 {
		options.SinceSeconds = ptr.To(max(1, int64(g.Since/time.Second)))
	}
	if previous {
		title, file = title+" (previous)", container+"-previous.log"
	}
	ctx, cancel := context.WithTimeoutCause(ctx, logTimeout, fmt.Errorf("the log was not read within %s", logTimeout))
	defer cancel()
	stream, err := g.Logs(ctx, pod.Namespace, pod.Name, options)
	if err != nil {
		g.gap("log "+title, errors.Join(err, context.Cause(ctx)))
		return nil
	}
	defer func() { _ = stream.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() })
	defer stop()
	text, note, err := tail(stream, g.LogBytes)
	if err != nil {
		g.gap("end of log "+title, errors.Join(err, context.Cause(ctx)))
	}
	_, err = g.addFile(title, note+g.redactor.Text(text), "logs", w.component, pod.Name, file)
	return err
}

// tail returns the last bytes of a stream, from the start of a line, and a note if it cut off others. It needs memory for
// twice the limit.
func tail(stream io.Reader, limit int64) (text, note string, err error) {
	kept, block, cut := make([]byte, 0, 64<<10), make([]byte, 32<<10), false
	for err == nil {
		var n int
		n, err = stream.Read(block)
		kept = append(kept, block[:n]...)
		if int64(len(kept)) > 2*limit {
			kept, cut = append(kept[:0], kept[int64(len(kept))-limit:]...), true
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if int64(len(kept)) > limit {
		kept, cut = kept[int64(len(kept))-limit:], true
	}
	if text = string(kept); !cut {
		return text, "", err
	}
	if _, lines, found := strings.Cut(text, "\n"); found && lines != "" {
		return lines, fmt.Sprintf("[only the last %d bytes follow]\n", limit), err
	}
	// The text starts inside of the only line, maybe inside of a credential.
	if at := strings.IndexAny(text, " ,}"); at >= 0 {
		text = text[at+1:]
	} else {
		text = ""
	}
	return text, fmt.Sprintf("[only the last %d bytes follow, from inside of a line]\n", limit), err
}
