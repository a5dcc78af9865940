// A tree of widgets: virtual functions, several bases, templates, shared_ptr, member pointers.
#include "../heap.hpp"
#include <cmath>
#include <functional>
#include <vector>

namespace ui {

struct Rect {
    float x, y, width, height;
    bool holds(float px, float py) const {
        return px >= x && px < x + width && py >= y && py < y + height;
    }
};

struct Style {
    uint32_t colour, border;
    float padding[4];
    long uses = 0;
};

class Node {
public:
    virtual ~Node() = default;
    virtual void layout(const Rect &space) { rect_ = space; }
    virtual long draw(std::vector<uint32_t> &canvas) = 0;
    virtual Node *at(float x, float y) { return rect_.holds(x, y) ? this : nullptr; }
    unsigned id = 0, draws = 0;

protected:
    Rect rect_{};
    std::shared_ptr<Style> style_;
    friend class Builder;
};

struct Clickable {
    virtual ~Clickable() = default;
    virtual void click(int button) { clicks[button & 3]++; }
    unsigned clicks[4] = {};
    unsigned last_button = 0;
};

struct Observed {
    long changes = 0, seen = 0;
    virtual void changed() { changes++; }
    virtual ~Observed() = default;
};

struct Ranged : Observed {
    double low = 0, high = 100, value = 50;
    void set(double v) {
        value = std::fmin(high, std::fmax(low, v));
        changed();
    }
};

struct Labelled {
    char label[24] = "widget";
    unsigned short length = 6, titles = 0;
    void retitle(unsigned n) {
        label[n % 20] = char('a' + n % 26);
        titles++;
    }
};

class Button : public Node, public Clickable {
public:
    long draw(std::vector<uint32_t> &canvas) override {
        draws++;
        style_->uses++;
        canvas[id % canvas.size()] ^= style_->colour;
        return clicks[0] + clicks[1];
    }
    void click(int button) override {
        Clickable::click(button);
        pressed_ = !pressed_;
        last_button = button;
    }

private:
    bool pressed_ = false;
};

class Slider final : public Node, public Ranged, public Labelled {
public:
    long draw(std::vector<uint32_t> &canvas) override {
        size_t pixel = size_t(rect_.x + rect_.width * value / high) % canvas.size();
        canvas[pixel] += style_->border;
        seen = changes;
        draws += length;
        return long(value) + label[changes % 24];
    }
};

template <class T, int N> class Panel : public Node {
public:
    void layout(const Rect &space) override {
        Node::layout(space);
        float step = space.height / N;
        for (int i = 0; i < N; i++)
            if (children_[i])
                children_[i]->layout(
                    {space.x, space.y + i * step, space.width, step - style_->padding[0]});
    }
    long draw(std::vector<uint32_t> &canvas) override {
        long sum = 0;
        for (auto &child : children_)
            if (child) sum += child->draw(canvas);
        draws++;
        return sum + weight_;
    }
    Node *at(float x, float y) override {
        if (!rect_.holds(x, y)) return nullptr;
        for (auto &child : children_)
            if (child)
                if (Node *found = child->at(x, y)) return found;
        return this;
    }
    std::unique_ptr<T> &child(unsigned i) { return children_[i % N]; }

private:
    std::unique_ptr<T> children_[N];
    long weight_ = N;
};

class Builder {
public:
    std::vector<std::shared_ptr<Style>> styles;
    std::vector<Clickable *> clickables;
    std::vector<Slider *> sliders;
    unsigned made = 0;

    template <class W> std::unique_ptr<W> make() {
        auto widget = heap::make<W>();
        widget->id = made++;
        widget->style_ = styles[made % styles.size()];
        return widget;
    }
    std::unique_ptr<Node> tree(int depth) {
        if (depth == 0) {
            if (made % 3) {
                auto slider = make<Slider>();
                sliders.push_back(slider.get());
                return slider;
            }
            auto button = make<Button>();
            clickables.push_back(button.get());
            return button;
        }
        if (depth % 2) return fill(make<Panel<Node, 3>>(), 3, depth);
        return fill(make<Panel<Node, 5>>(), 5, depth);
    }

private:
    template <class P> std::unique_ptr<Node> fill(std::unique_ptr<P> panel, unsigned n, int depth) {
        for (unsigned i = 0; i < n; i++) panel->child(i) = tree(depth - 1);
        return panel;
    }
};

struct Event {
    float x, y;
    int button;
    double Ranged::*field;
};

NOINLINE long click_all(const std::vector<Clickable *> &targets, const Event *events, int count) {
    long sum = 0;
    for (int i = 0; i < count; i++) {
        Clickable *c = targets[(unsigned)(events[i].x * 7) % targets.size()];
        c->click(events[i].button);
        sum += c->last_button;
    }
    return sum;
}

NOINLINE double slide_all(const std::vector<Slider *> &sliders, const Event *events, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) {
        Slider *s = sliders[i % sliders.size()];
        s->set(s->value + events[i].y - 50);
        if (i % 4 == 0) s->retitle(i);
        sum += s->*events[i].field;
    }
    return sum;
}

NOINLINE long hit_test(Node &root, const Event *events, int count) {
    long sum = 0;
    for (int i = 0; i < count; i++)
        if (Node *hit = root.at(events[i].x * 8, events[i].y * 6)) sum += hit->id;
    return sum;
}

} // namespace ui

int main(int argc, char **argv) {
    using namespace ui;
    tr_init(argc, argv);
    Builder builder;
    TR_LOCAL(builder, "ui::Builder");
    for (unsigned i = 0; i < 12; i++)
        builder.styles.emplace_back(heap::make<Style>(Style{0xff00 + i, 1, {1, 2, 3, 4}}));
    {
        heap::Of<Clickable *> scope;
        builder.clickables.reserve(2000);
    }
    {
        heap::Of<Slider *> scope;
        builder.sliders.reserve(2000);
    }
    auto root = builder.tree(5);
    Event *events = HEAP_CALLOC(Event, 256);
    for (int i = 0; i < 256; i++)
        events[i] = {float(tr_rand() % 100), float(tr_rand() % 100), int(i % 3),
                     i & 1 ? &Ranged::value : &Ranged::high};
    std::vector<uint32_t> canvas;
    {
        heap::Of<uint32_t> scope;
        canvas.resize(4096);
    }
    double sum = 0;
    for (int frame = 0; tr_more(); frame++) {
        root->layout({0, 0, 800, float(600 + frame % 4)});
        sum += root->draw(canvas);
        sum += click_all(builder.clickables, events, 256);
        sum += slide_all(builder.sliders, events, 256);
        sum += hit_test(*root, events, 64);
    }
    tr_sink = uint64_t(sum);
}
