// Text layout: fonts with kerning and ligatures, runs of style, shaping with a cache of words, paragraphs
// broken as a whole, a tree of boxes, a display list that is clipped and drawn into a coverage mask.
#include "../heap.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace typeset {

template <typename T> using Vector = std::vector<T, heap::Alloc<T>>;
template <typename T> using Deque = std::deque<T, heap::Alloc<T>>;
template <typename T> using List = std::list<T, heap::Alloc<T>>;
template <typename K, typename V> using TreeMap = std::map<K, V, std::less<K>, heap::Alloc<std::pair<const K, V>>>;
template <typename K, typename V, typename H = std::hash<K>>
using HashMap = std::unordered_map<K, V, H, std::equal_to<K>, heap::Alloc<std::pair<const K, V>>>;
using U16String = std::basic_string<char16_t, std::char_traits<char16_t>, heap::Alloc<char16_t>>;

using GlyphId = std::uint16_t;
using Unit = std::int32_t; // a 64th of a pixel

struct Point { Unit x = 0, y = 0; };
struct Size { Unit width = 0, height = 0; };

struct Rect {
    Point origin;
    Size size;
    bool intersects(const Rect& o) const {
        return origin.x < o.origin.x + o.size.width && o.origin.x < origin.x + size.width &&
               origin.y < o.origin.y + o.size.height && o.origin.y < origin.y + size.height;
    }
    Rect united(const Rect& o) const {
        if (!size.width) return o;
        const Unit left = std::min(origin.x, o.origin.x), top = std::min(origin.y, o.origin.y);
        return {{left, top}, {std::max(origin.x + size.width, o.origin.x + o.size.width) - left,
                              std::max(origin.y + size.height, o.origin.y + o.size.height) - top}};
    }
};

// ---- fonts ----

struct CmapRange {
    char16_t first, last;
    GlyphId glyph;
};

struct GlyphMetrics {
    std::int16_t advance, bearing;
    std::int16_t ascent, descent;
    std::uint32_t outline; // index into the segments
};

struct Segment {
    std::int8_t dx, dy;
    enum Kind : std::uint8_t { Line, Move, Close } kind;
};

class Font {
public:
    Font(const char* family, int weight) : m_family(family), m_weight(weight) {
        GlyphId glyph = 1;
        for (char16_t c : {u'!', u'0', u'A', u'a', u'\u00c0', u'\u0391', u'\u05d0'}) {
            const char16_t last = c + (c == u'\u00c0' ? 60 : c == u'!' ? 14 : 25);
            m_cmap.push_back({c, last, glyph});
            glyph += last - c + 1;
        }
        for (GlyphId g = 0; g < glyph + 8; ++g) {
            m_metrics.push_back({std::int16_t(280 + g * 37 % 330 + weight / 4), std::int16_t(g % 5), std::int16_t(500 + g * 13 % 200),
                                 std::int16_t(g % 7 == 0 ? 150 : 0), std::uint32_t(m_segments.size())});
            m_segments.push_back({1, 2, Segment::Move});
            for (int i = 0; i < 4 + g % 5; ++i)
                m_segments.push_back({std::int8_t((g * 7 + i * 5) % 9 - 4), std::int8_t((g * 3 + i * 7) % 7 - 3), Segment::Line});
            m_segments.push_back({0, 0, Segment::Close});
        }
        for (int i = 0; i < 300; ++i) {
            const std::uint32_t left = tr_rand() % glyph, right = tr_rand() % glyph;
            m_kerning[left << 16 | right] = std::int16_t(tr_rand() % 40) - 30;
        }
        m_ligatures[{glyphFor(u'f'), glyphFor(u'i')}] = glyph;
        m_ligatures[{glyphFor(u'f'), glyphFor(u'l')}] = glyph + 1;
        m_ligatures[{glyphFor(u't'), glyphFor(u'h')}] = glyph + 2;
    }

    GlyphId glyphFor(char16_t c) const {
        auto it = std::upper_bound(m_cmap.begin(), m_cmap.end(), c, [](char16_t c, const CmapRange& r) { return c < r.first; });
        if (it == m_cmap.begin() || c > (--it)->last) return 0;
        return it->glyph + (c - it->first);
    }
    const GlyphMetrics& metrics(GlyphId g) const { return m_metrics[g]; }
    int kerning(GlyphId left, GlyphId right) const {
        auto it = m_kerning.find(std::uint32_t(left) << 16 | right);
        return it == m_kerning.end() ? 0 : it->second;
    }
    GlyphId ligature(GlyphId a, GlyphId b) const {
        auto it = m_ligatures.find({a, b});
        return it == m_ligatures.end() ? 0 : it->second;
    }
    const Segment* outline(GlyphId g) const { return &m_segments[m_metrics[g].outline]; }
    int weight() const { return m_weight; }

private:
    const char* m_family;
    int m_weight;
    Vector<CmapRange> m_cmap;
    Vector<GlyphMetrics> m_metrics;
    Vector<Segment> m_segments;
    HashMap<std::uint32_t, std::int16_t> m_kerning;
    TreeMap<std::pair<GlyphId, GlyphId>, GlyphId> m_ligatures;
};

struct Style {
    const Font* font;
    float size;
    std::uint32_t colour;
    std::uint8_t letterSpacing;
    bool underline : 1;
    bool smallCaps : 1;
    bool rightToLeft : 1;
};

// ---- shaping ----

struct Glyph {
    GlyphId id;
    std::uint16_t cluster;
    Unit advance;
    Point offset;
};

struct ShapedWord {
    U16String text;
    const Style* style;
    Vector<Glyph> glyphs;
    Unit width = 0, ascent = 0, descent = 0;
    unsigned uses = 0;
};

class ShapeCache {
public:
    explicit ShapeCache(std::size_t capacity) : m_capacity(capacity) {}

    const ShapedWord& shape(const char16_t* text, std::size_t length, const Style& style) {
        std::size_t key = reinterpret_cast<std::size_t>(&style) * 31;
        for (std::size_t i = 0; i < length; ++i) key = (key ^ text[i]) * 0x100000001b3ull;
        auto found = m_index.find(key);
        if (found != m_index.end()) {
            m_words.splice(m_words.begin(), m_words, found->second.second);
            ++m_hits;
            ++found->second.second->uses;
            return *found->second.second;
        }
        ++m_misses;
        if (m_words.size() >= m_capacity) {
            m_index.erase(m_keys.back());
            m_keys.pop_back();
            m_words.pop_back();
        }
        m_words.emplace_front();
        m_keys.push_front(key);
        m_index.emplace(key, std::make_pair(m_keys.begin(), m_words.begin()));
        ShapedWord& word = m_words.front();
        word.text.assign(text, length);
        word.style = &style;
        run(word);
        return word;
    }
    void clear() {
        m_index.clear();
        m_keys.clear();
        m_words.clear();
    }
    std::uint64_t hits() const { return m_hits; }

private:
    NOINLINE void run(ShapedWord& word) {
        const Font& font = *word.style->font;
        const float scale = word.style->size * 64 / 1000;
        word.glyphs.reserve(8);
        for (std::size_t i = 0; i < word.text.size(); ++i) {
            const GlyphId id = font.glyphFor(word.text[i]);
            if (!word.glyphs.empty())
                if (const GlyphId joined = font.ligature(word.glyphs.back().id, id)) {
                    word.glyphs.back().id = joined;
                    continue;
                }
            word.glyphs.push_back({id, std::uint16_t(i), 0, {}});
        }
        if (word.style->rightToLeft) std::reverse(word.glyphs.begin(), word.glyphs.end());
        Unit pen = 0;
        for (std::size_t i = 0; i < word.glyphs.size(); ++i) {
            Glyph& glyph = word.glyphs[i];
            const GlyphMetrics& m = font.metrics(glyph.id);
            int advance = m.advance + word.style->letterSpacing;
            if (i + 1 < word.glyphs.size()) advance += font.kerning(glyph.id, word.glyphs[i + 1].id);
            glyph.advance = Unit(advance * scale);
            glyph.offset = {pen + Unit(m.bearing * scale), 0};
            pen += glyph.advance;
            word.ascent = std::max(word.ascent, Unit(m.ascent * scale));
            word.descent = std::max(word.descent, Unit(m.descent * scale));
        }
        word.width = pen;
    }

    using Words = List<ShapedWord>;
    using Keys = List<std::size_t>;
    std::size_t m_capacity;
    Words m_words;
    Keys m_keys;
    HashMap<std::size_t, std::pair<Keys::iterator, Words::iterator>> m_index;
    std::uint64_t m_hits = 0, m_misses = 0;
};

// ---- breaking ----

struct Box { const ShapedWord* word; Unit width; };
struct Glue { Unit width, stretch, shrink; };
struct Penalty { Unit width; int cost; bool flagged; };
using Item = std::variant<Box, Glue, Penalty>;

struct Totals { Unit width = 0, stretch = 0, shrink = 0; };

struct Breakpoint {
    std::size_t position;
    int line, fitness;
    Totals totals;
    double demerits;
    const Breakpoint* previous;
    Breakpoint* nextActive;
};

class Breaker {
public:
    NOINLINE const Vector<std::size_t>& run(const Vector<Item>& items, Unit lineWidth) {
        m_used = 0;
        m_breaks.clear();
        m_sum = {};
        m_active = add({0, 0, 1, {}, 0, nullptr, nullptr});
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (auto* box = std::get_if<Box>(&items[i])) m_sum.width += box->width;
            else if (auto* glue = std::get_if<Glue>(&items[i])) {
                if (i && std::holds_alternative<Box>(items[i - 1])) consider(items, i, lineWidth, 0);
                m_sum.width += glue->width;
                m_sum.stretch += glue->stretch;
                m_sum.shrink += glue->shrink;
            } else if (const Penalty& penalty = std::get<Penalty>(items[i]); penalty.cost < 1000)
                consider(items, i, lineWidth, penalty.cost);
        }
        const Breakpoint* best = m_active;
        for (const Breakpoint* b = m_active; b; b = b->nextActive)
            if (b->demerits < best->demerits) best = b;
        for (; best && best->previous; best = best->previous) m_breaks.push_back(best->position);
        std::reverse(m_breaks.begin(), m_breaks.end());
        return m_breaks;
    }

private:
    Breakpoint* add(const Breakpoint& b) {
        if (m_used == m_nodes.size()) m_nodes.emplace_back();
        return &(m_nodes[m_used++] = b);
    }

    NOINLINE void consider(const Vector<Item>& items, std::size_t at, Unit lineWidth, int cost) {
        std::array<std::pair<double, Breakpoint*>, 4> best;
        best.fill({std::numeric_limits<double>::max(), nullptr});
        for (Breakpoint **link = &m_active, *a = m_active; a; a = *link) {
            const Unit width = m_sum.width - a->totals.width;
            const Unit stretch = m_sum.stretch - a->totals.stretch, shrink = m_sum.shrink - a->totals.shrink;
            double ratio = 0;
            if (width < lineWidth) ratio = stretch > 0 ? double(lineWidth - width) / stretch : 100;
            else if (width > lineWidth) ratio = shrink > 0 ? double(lineWidth - width) / shrink : -100;
            const bool forced = cost <= -1000;
            if (ratio < -1 || forced) {
                if (m_active->nextActive || forced) *link = a->nextActive;
                else link = &a->nextActive;
            } else link = &a->nextActive;
            if (ratio > 12 && !forced) continue;
            if (ratio < -1 && !(forced && !best[0].second && !*link)) continue;
            const int fitness = ratio < -0.5 ? 0 : ratio <= 0.5 ? 1 : ratio <= 1 ? 2 : 3;
            const double bad = 100 * std::min(std::abs(ratio * ratio * ratio), 1000.0);
            const double demerits = a->demerits + (1 + bad) * (1 + bad) + (forced ? 0 : double(cost) * cost) + (std::abs(fitness - a->fitness) > 1 ? 3000 : 0);
            if (demerits < best[fitness].first) best[fitness] = {demerits, a};
        }
        Totals after = m_sum;
        if (auto* glue = std::get_if<Glue>(&items[at])) {
            after.width += glue->width;
            after.stretch += glue->stretch;
            after.shrink += glue->shrink;
        }
        for (int fitness = 0; fitness < 4; ++fitness)
            if (Breakpoint* from = best[fitness].second)
                m_active = add({at, from->line + 1, fitness, after, best[fitness].first, from, m_active});
    }

    Deque<Breakpoint> m_nodes; // kept from one paragraph to the next
    std::size_t m_used = 0;
    Breakpoint* m_active = nullptr;
    Totals m_sum;
    Vector<std::size_t> m_breaks;
};

// ---- what is drawn ----

struct DrawGlyphs { const ShapedWord* word; Point at; std::uint32_t colour; };
struct DrawRule { Rect rect; std::uint32_t colour; };
struct PushClip { Rect rect; };
struct PopClip { };
using Command = std::variant<DrawGlyphs, DrawRule, PushClip, PopClip>;

class Canvas {
public:
    Canvas(int width, int height) : m_width(width), m_height(height), m_coverage(width * height), m_clips{{{0, 0}, {width * 64, height * 64}}} {}

    void operator()(const DrawGlyphs& draw) {
        Point pen = draw.at;
        const Font& font = *draw.word->style->font;
        for (const Glyph& glyph : draw.word->glyphs) {
            const Rect box{{pen.x, pen.y - draw.word->ascent}, {glyph.advance, draw.word->ascent}};
            if (box.intersects(m_clips.back())) stroke(font.outline(glyph.id), pen.x + glyph.offset.x, pen.y + glyph.offset.y, draw.colour);
            pen.x += glyph.advance;
        }
    }
    void operator()(const DrawRule& rule) {
        if (!rule.rect.intersects(m_clips.back())) return;
        const int y = rule.rect.origin.y / 64;
        for (int x = rule.rect.origin.x / 64; x < (rule.rect.origin.x + rule.rect.size.width) / 64; x += 2) put(x, y, rule.colour & 255);
    }
    void operator()(const PushClip& clip) { m_clips.push_back(clip.rect); }
    void operator()(const PopClip&) { m_clips.pop_back(); }
    NOINLINE void fade() {
        for (std::size_t i = m_phase++ % 8; i < m_coverage.size(); i += 8) m_coverage[i] -= m_coverage[i] / 4;
    }

private:
    void put(int x, int y, int amount) {
        if (x < 0 || y < 0 || x >= m_width || y >= m_height) return;
        std::uint8_t& c = m_coverage[y * m_width + x];
        c = std::uint8_t(std::min(255, c + amount));
    }
    NOINLINE void stroke(const Segment* s, int x, int y, std::uint32_t colour) {
        for (; s->kind != Segment::Close; ++s) {
            const int nx = x + s->dx * 64, ny = y + s->dy * 64;
            if (s->kind == Segment::Line)
                for (int i = 0; i < 2; ++i) put((x + (nx - x) * i / 2) / 64, (y + (ny - y) * i / 2) / 64, 16 + (colour & 63));
            x = nx;
            y = ny;
        }
    }
    int m_width, m_height;
    Vector<std::uint8_t> m_coverage;
    Vector<Rect> m_clips;
    unsigned m_phase = 0;
};

// ---- boxes ----

struct Context {
    ShapeCache& shaper;
    Breaker& breaker;
    std::function<void(const char*, int)> report;
};

class LayoutBox {
public:
    virtual ~LayoutBox() = default;
    virtual Size layout(Context& context, Unit width) = 0;
    virtual void paint(Vector<Command>& out, Point at) const = 0;
    virtual const LayoutBox* hit(Point p) const { return m_frame.intersects({p, {1, 1}}) ? this : nullptr; }
    Rect m_frame;
};

struct StyleRun { std::size_t end; const Style* style; };

struct Fragment {
    const ShapedWord* word;
    Unit x;
};

struct Line {
    std::size_t firstFragment, fragments;
    Unit baseline, width, ascent;
};

class Paragraph final : public LayoutBox {
public:
    Paragraph(U16String text, Vector<StyleRun> runs, bool justified) : m_text(std::move(text)), m_runs(std::move(runs)), m_justified(justified) {}

    Size layout(Context& context, Unit width) override {
        itemize(context);
        const Vector<std::size_t>& breaks = context.breaker.run(m_items, width);
        m_lines.clear();
        m_fragments.clear();
        Unit y = 0;
        std::size_t from = 0;
        for (std::size_t to : breaks) {
            y = line(from, to, width, y);
            from = to + 1;
        }
        context.report("paragraph", int(m_lines.size()));
        m_frame.size = {width, y};
        return m_frame.size;
    }

    void paint(Vector<Command>& out, Point at) const override {
        for (const Line& l : m_lines)
            for (std::size_t i = l.firstFragment; i < l.firstFragment + l.fragments; ++i) {
                const Fragment& f = m_fragments[i];
                out.push_back(DrawGlyphs{f.word, {at.x + f.x, at.y + l.baseline}, f.word->style->colour});
                if (f.word->style->underline) out.push_back(DrawRule{{{at.x + f.x, at.y + l.baseline + 64}, {f.word->width, 64}}, f.word->style->colour});
            }
    }
    void edit(std::size_t at, char16_t c) {
        if (m_text[at % m_text.size()] != u' ') m_text[at % m_text.size()] = c;
    }

private:
    NOINLINE void itemize(Context& context) {
        m_items.clear();
        std::size_t start = 0;
        auto run = m_runs.begin();
        while (start < m_text.size()) {
            std::size_t end = start;
            while (end < m_text.size() && end < run->end && m_text[end] != u' ' && m_text[end] != u'-') ++end;
            if (end > start) {
                const ShapedWord& word = context.shaper.shape(&m_text[start], end - start, *run->style);
                m_items.push_back(Box{&word, word.width});
            }
            const Unit em = Unit(run->style->size * 64);
            if (end < m_text.size() && m_text[end] == u' ') m_items.push_back(Glue{em / 3, em / 5, em / 8}), ++end;
            else if (end < m_text.size() && m_text[end] == u'-') m_items.push_back(Penalty{em / 4, 50, true}), ++end;
            start = end;
            if (start >= run->end && run + 1 != m_runs.end()) ++run;
        }
        m_items.push_back(Glue{0, 100000, 0});
        m_items.push_back(Penalty{0, -1000, false});
    }

    NOINLINE Unit line(std::size_t from, std::size_t to, Unit width, Unit y) {
        Totals natural;
        Unit ascent = 0, descent = 0, x = 0;
        for (std::size_t i = from; i < to; ++i)
            if (auto* box = std::get_if<Box>(&m_items[i])) {
                natural.width += box->width;
                ascent = std::max(ascent, box->word->ascent);
                descent = std::max(descent, box->word->descent);
            } else if (auto* glue = std::get_if<Glue>(&m_items[i])) {
                natural.width += glue->width;
                natural.stretch += glue->stretch;
            }
        const double ratio = m_justified && natural.stretch ? std::min(2.0, double(width - natural.width) / natural.stretch) : 0;
        Line made{m_fragments.size(), 0, y + ascent, natural.width, ascent};
        for (std::size_t i = from; i < to; ++i)
            if (auto* box = std::get_if<Box>(&m_items[i])) {
                m_fragments.push_back({box->word, x});
                x += box->width;
            } else if (auto* glue = std::get_if<Glue>(&m_items[i])) x += glue->width + Unit(glue->stretch * ratio);
        made.fragments = m_fragments.size() - made.firstFragment;
        m_lines.push_back(made);
        return y + ascent + descent + 128;
    }

    U16String m_text;
    Vector<StyleRun> m_runs;
    Vector<Item> m_items;
    Vector<Line> m_lines;
    Vector<Fragment> m_fragments;
    bool m_justified;
};

class Block : public LayoutBox {
public:
    explicit Block(Unit padding) : m_padding(padding) {}
    void add(std::unique_ptr<LayoutBox> child) { m_children.push_back(std::move(child)); }

    Size layout(Context& context, Unit width) override {
        Unit y = m_padding;
        for (auto& child : m_children) {
            child->m_frame.origin = {m_padding, y};
            y += child->layout(context, width - 2 * m_padding).height + m_padding;
        }
        return m_frame.size = {width, y};
    }
    void paint(Vector<Command>& out, Point at) const override {
        out.push_back(PushClip{{at, m_frame.size}});
        for (const auto& child : m_children) child->paint(out, {at.x + child->m_frame.origin.x, at.y + child->m_frame.origin.y});
        out.push_back(PopClip{});
    }
    const LayoutBox* hit(Point p) const override {
        for (const auto& child : m_children)
            if (const LayoutBox* found = child->hit({p.x - m_frame.origin.x, p.y - m_frame.origin.y})) return found;
        return LayoutBox::hit(p);
    }

protected:
    Unit m_padding;
    Vector<std::unique_ptr<LayoutBox>> m_children;
};

class Columns final : public Block {
public:
    Columns(Unit padding, int count) : Block(padding), m_count(count) {}

    Size layout(Context& context, Unit width) override {
        const Unit each = (width - m_padding) / m_count;
        m_heights.assign(m_count, m_padding);
        m_bounds = {};
        for (auto& child : m_children) {
            auto shortest = std::min_element(m_heights.begin(), m_heights.end());
            child->m_frame.origin = {m_padding + Unit(shortest - m_heights.begin()) * each, *shortest};
            *shortest += child->layout(context, each - m_padding).height + m_padding;
            m_bounds = m_bounds.united(child->m_frame);
        }
        return m_frame.size = {width, *std::max_element(m_heights.begin(), m_heights.end())};
    }

private:
    int m_count;
    Vector<Unit> m_heights;
    Rect m_bounds;
};

} // namespace typeset

static typeset::Style styles[6];

namespace {

using namespace typeset;

U16String prose(int words) {
    static const char16_t* const vocabulary[] = {u"the", u"first", u"office", u"of", u"a", u"flow", u"line-height", u"that", u"justified",
                                                 u"paragraph", u"glyph", u"in", u"kerning", u"hyphen-ation", u"\u0391\u0392\u0393", u"box",
                                                 u"and", u"\u05d0\u05d1\u05d2", u"this", u"measure", u"\u00e9tage", u"width", u"to", u"page"};
    U16String text;
    for (int i = 0; i < words; ++i) {
        const std::uint64_t r = tr_rand();
        text += vocabulary[(r & 31) % 24];
        if ((r >> 8 & 31) == 0) text += char16_t(u'a' + (r >> 12) % 26);
        text += u' ';
    }
    return text;
}

std::unique_ptr<LayoutBox> paragraph(int words) {
    U16String text = prose(words);
    Vector<StyleRun> runs;
    for (std::size_t at = 0; at < text.size();) {
        at = text.find(u' ', std::min(text.size(), at + 20 + tr_rand() % 60));
        if (at == text.npos) at = text.size();
        runs.push_back({at, &styles[tr_rand() % std::size(styles)]});
    }
    return heap::make<Paragraph>(std::move(text), std::move(runs), words % 2 == 0);
}

} // namespace

int main(int argc, char** argv) {
    tr_init(argc, argv);
    TR_GLOBAL(styles, "typeset::Style []");
    auto regular = heap::make<Font>("Serif", 400), bold = heap::make<Font>("Sans", 700);
    for (std::size_t i = 0; i < std::size(styles); ++i)
        styles[i] = {i % 3 ? regular.get() : bold.get(), 9.0f + i, 0x202020u * unsigned(i), std::uint8_t(i), i == 2, false, i == 5};

    static ShapeCache cache(1500);
    static Breaker breaker;
    static std::uint64_t laidOut;
    TR_GLOBALX(cache);
    TR_GLOBALX(breaker);
    Context context{cache, breaker, [](const char*, int lines) { laidOut += lines; }};
    auto page = heap::make<Block>(256);
    Vector<Paragraph*> editable;
    for (int section = 0; section < 4; ++section) {
        auto columns = heap::make<Columns>(128, 1 + section % 3);
        for (int i = 0; i < 3; ++i) {
            auto made = paragraph(30 + 13 * (section + i));
            editable.push_back(static_cast<Paragraph*>(made.get()));
            columns->add(std::move(made));
        }
        page->add(std::move(columns));
    }
    auto canvas = heap::make<Canvas>(320, 400);
    Vector<Command> commands;
    std::uint64_t sum = 0;
    for (unsigned round = 0; tr_more(); ++round) {
        const std::uint64_t r = tr_rand();
        editable[r % editable.size()]->edit(r >> 8 & 0xffff, char16_t(u'a' + (r >> 30) % 26));
        if (round % 96 == 95) cache.clear();
        page->layout(context, Unit(320 + (r >> 40) % 60) * 64);
        if (round % 2 == 0) {
            commands.clear();
            page->paint(commands, {0, 0});
            for (const Command& command : commands) std::visit(*canvas, command);
            canvas->fade();
        }
        for (int i = 0; i < 6; ++i) sum += page->hit({Unit(r >> (i * 8) & 255) * 80, Unit(r >> (i * 6) & 255) * 100}) != nullptr;
    }
    if (getenv("VERBOSE")) printf("%lu lines %lu hits %lu commands\n", laidOut, cache.hits(), commands.size());
    tr_sink = sum + laidOut;
}
