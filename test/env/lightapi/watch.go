package lightapi

import (
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	restwatch "k8s.io/client-go/rest/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watchTime is the default timeout of a watch, in seconds.
const watchTime = 1800

// stream is the response of a watch.
type stream struct {
	encoder *restwatch.Encoder
	flush   func() error
	view    view
}

// openStream starts the response of a watch.
func openStream(w http.ResponseWriter, r *http.Request, v view) (*stream, error) {
	info, err := negotiation.NegotiateOutputMediaTypeStream(r, codecs, v)
	if err != nil {
		return nil, err
	}
	contentType := info.MediaType
	if contentType != runtime.ContentTypeJSON {
		contentType += ";stream=watch"
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(http.StatusOK)
	s := &stream{
		encoder: restwatch.NewEncoder(streaming.NewEncoder(info.StreamSerializer.Framer.NewFrameWriter(w), info.StreamSerializer.Serializer),
			info.Serializer),
		flush: http.NewResponseController(w).Flush, view: v,
	}
	return s, s.flush()
}

func (s *stream) send(events ...watch.Event) error {
	for _, e := range events {
		if err := s.encoder.Encode(&watch.Event{Type: e.Type, Object: s.view.of(e.Object)}); err != nil {
			return err
		}
	}
	return s.flush()
}

// bookmark sends the reached version.
func (s *stream) bookmark(k *kind, version int, annotations map[string]string) error {
	object := k.empty()
	object.SetResourceVersion(strconv.Itoa(version))
	object.SetAnnotations(annotations)
	return s.send(watch.Event{Type: watch.Bookmark, Object: object})
}

// watch sends changes until its timeout or the client's disconnection. An error is returned only before the
// response has started.
func (c *call) watch(w http.ResponseWriter) error {
	options, selected, err := parse(c.key.kind, c.key.Namespace, c.request.URL.Query())
	if err != nil {
		return err
	}
	initial := ptr.Deref(options.SendInitialEvents, false)
	var events []watch.Event
	var version int
	if initial || options.ResourceVersion == "" || options.ResourceVersion == "0" {
		var found []client.Object
		found, version = c.store.list(selected)
		for _, object := range found {
			events = append(events, watch.Event{Type: watch.Added, Object: object})
		}
	} else if version, err = strconv.Atoi(options.ResourceVersion); err != nil {
		return apierrors.NewBadRequest("no resource version: " + options.ResourceVersion)
	}
	if _, _, _, err := c.store.since(version, selected); err != nil {
		return err
	}
	stream, err := openStream(w, c.request, c.view)
	if err == nil {
		err = stream.send(events...)
	}
	if err == nil && initial {
		err = stream.bookmark(c.key.kind, version, map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	if err == nil {
		c.follow(stream, options, selected, version)
	}
	return nil // otherwise the client has disconnected
}

// follow sends the changes after a version.
func (c *call) follow(stream *stream, options metav1.ListOptions, selected selection, version int) {
	over := time.After(time.Duration(ptr.Deref(options.TimeoutSeconds, watchTime)) * time.Second)
	for {
		events, reached, more, err := c.store.since(version, selected)
		if err != nil || len(events) > 0 && stream.send(events...) != nil {
			return
		}
		version = reached
		select {
		case <-more:
		case <-c.request.Context().Done():
			return
		case <-over:
			if options.AllowWatchBookmarks {
				_ = stream.bookmark(selected.kind, version, nil) // the last event
			}
			return
		}
	}
}
