//===- langserv.cpp - A server for a small language: symbols and references --===//
//
// Files are lexed, parsed to trees of declarations and statements, resolved by
// scopes and contexts, and indexed: symbols by their ID, references, trigrams.
// Queries complete names fuzzily, find what refers to what, and look under the cursor.
//
//===----------------------------------------------------------------------===//
#include "../heap.hpp"
#include <algorithm>
#include <cassert>
#include <map>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

namespace ls {

template <typename T> using Vector = std::vector<T, heap::Alloc<T>>;
using String = std::basic_string<char, std::char_traits<char>, heap::Alloc<char>>;
template <typename K, typename V> using OrderedMap = std::map<K, V, std::less<K>, heap::Alloc<std::pair<const K, V>>>;

//===-- Support -----------------------------------------------------------===//

class StringRef {
  const char *Data = nullptr;
  size_t Length = 0;

public:
  StringRef() = default;
  StringRef(const char *Str) : Data(Str), Length(strlen(Str)) {}
  StringRef(const char *Str, size_t Len) : Data(Str), Length(Len) {}
  StringRef(const String &Str) : Data(Str.data()), Length(Str.size()) {}
  const char *data() const { return Data; }
  size_t size() const { return Length; }
  char operator[](size_t I) const { return Data[I]; }
  String str() const { return String(Data, Length); }
  bool equals(StringRef RHS) const { return Length == RHS.Length && memcmp(Data, RHS.Data, Length) == 0; }
};

static unsigned hashString(StringRef Str) {
  unsigned Result = 0;
  for (size_t I = 0; I != Str.size(); ++I) Result = Result * 33 + static_cast<unsigned char>(Str[I]);
  return Result ^ Result >> 15;
}

/// Slabs of one type; what is allocated is never destroyed, only all at once forgotten.
template <typename T> class SpecificBumpPtrAllocator {
  Vector<T *> Slabs;
  size_t CurSlab = 0, CurPtr = 0;
  static constexpr size_t SlabSize = 128;

public:
  template <typename... Args> T *create(Args &&...A) {
    if (CurSlab < Slabs.size() && CurPtr == SlabSize) {
      ++CurSlab;
      CurPtr = 0;
    }
    if (CurSlab == Slabs.size()) Slabs.push_back(heap::Alloc<T>().allocate(SlabSize));
    return new (Slabs[CurSlab] + CurPtr++) T(std::forward<Args>(A)...);
  }
  void Reset() { CurSlab = CurPtr = 0; }
  size_t allocated() const { return CurSlab * SlabSize + CurPtr; }
};

template <typename T> struct DenseMapInfo;
template <typename T> struct DenseMapInfo<T *> {
  static T *getEmptyKey() { return reinterpret_cast<T *>(~uintptr_t(0) << 12); }
  static unsigned getHashValue(const T *Ptr) { return (unsigned(uintptr_t(Ptr)) >> 4) ^ (unsigned(uintptr_t(Ptr)) >> 9); }
};
template <> struct DenseMapInfo<unsigned> {
  static unsigned getEmptyKey() { return ~0U; }
  static unsigned getHashValue(unsigned Val) { return Val * 37U ^ Val >> 13; }
};

template <typename KeyT, typename ValueT> struct DenseMapPair {
  KeyT first;
  ValueT second;
};

template <typename KeyT, typename ValueT> class DenseMap {
  using BucketT = DenseMapPair<KeyT, ValueT>;
  BucketT *Buckets = nullptr;
  unsigned NumEntries = 0, NumBuckets = 0;

  BucketT *probe(const KeyT &Key) const {
    unsigned Mask = NumBuckets - 1, BucketNo = DenseMapInfo<KeyT>::getHashValue(Key) & Mask, ProbeAmt = 1;
    while (true) {
      BucketT *ThisBucket = Buckets + BucketNo;
      if (ThisBucket->first == Key || ThisBucket->first == DenseMapInfo<KeyT>::getEmptyKey()) return ThisBucket;
      BucketNo = (BucketNo + ProbeAmt++) & Mask;
    }
  }
  NOINLINE void grow(unsigned AtLeast) {
    BucketT *Old = Buckets;
    unsigned OldCount = NumBuckets;
    NumBuckets = std::max(16u, AtLeast);
    Buckets = heap::Alloc<BucketT>().allocate(NumBuckets);
    for (unsigned I = 0; I != NumBuckets; ++I) new (Buckets + I) BucketT{DenseMapInfo<KeyT>::getEmptyKey(), ValueT()};
    for (unsigned I = 0; I != OldCount; ++I)
      if (Old[I].first != DenseMapInfo<KeyT>::getEmptyKey()) {
        BucketT *Dest = probe(Old[I].first);
        Dest->first = Old[I].first;
        Dest->second = std::move(Old[I].second);
      }
    release(Old, OldCount);
  }
  static void release(BucketT *B, unsigned Count) {
    for (unsigned I = 0; I != Count; ++I) B[I].~BucketT();
    heap::Alloc<BucketT>().deallocate(B, Count);
  }

public:
  DenseMap() = default;
  DenseMap(const DenseMap &) = delete;
  ~DenseMap() { release(Buckets, NumBuckets); }
  unsigned size() const { return NumEntries; }
  ValueT *find(const KeyT &Key) const {
    if (!NumEntries) return nullptr;
    BucketT *B = probe(Key);
    return B->first == Key ? &B->second : nullptr;
  }
  ValueT &operator[](const KeyT &Key) {
    if (NumEntries * 4 >= NumBuckets * 3) grow(NumBuckets * 2);
    BucketT *B = probe(Key);
    if (!(B->first == Key)) {
      B->first = Key;
      ++NumEntries;
    }
    return B->second;
  }
  void clear() {
    release(Buckets, NumBuckets);
    Buckets = nullptr;
    NumEntries = NumBuckets = 0;
  }
};

template <typename T, unsigned N> class SmallVector {
  T *BeginX;
  unsigned Size = 0, Capacity = N;
  T InlineElts[N];

public:
  SmallVector() : BeginX(InlineElts) {}
  SmallVector(const SmallVector &) = delete;
  ~SmallVector() {
    if (BeginX != InlineElts) heap::Alloc<T>().deallocate(BeginX, Capacity);
  }
  void push_back(const T &Elt) {
    if (Size == Capacity) {
      T *NewElts = heap::Alloc<T>().allocate(2 * Capacity);
      std::copy(BeginX, BeginX + Size, NewElts);
      if (BeginX != InlineElts) heap::Alloc<T>().deallocate(BeginX, Capacity);
      BeginX = NewElts;
      Capacity *= 2;
    }
    BeginX[Size++] = Elt;
  }
  T pop_back_val() { return BeginX[--Size]; }
  T *begin() const { return BeginX; }
  T *end() const { return BeginX + Size; }
  unsigned size() const { return Size; }
  T &operator[](unsigned I) const { return BeginX[I]; }
};

//===-- Identifiers and tokens --------------------------------------------===//

namespace tok {
enum TokenKind : unsigned short { eof, identifier, numeric, l_brace, r_brace, l_paren, r_paren, semi, comma, period, plus, star, less, equal, kw_namespace, kw_struct, kw_int, kw_if, kw_return, NUM_TOKENS };
}

class NamedDecl;

/// Ends the entry of the table: the characters lie behind it.
class IdentifierInfo {
public:
  unsigned TokenID : 9;
  unsigned IsKeyword : 1;
  unsigned OutOfDate : 1;
  unsigned Length : 12;
  unsigned NumUses = 0;
  IdentifierInfo *NextInBucket = nullptr;
  NamedDecl *FETokenInfo = nullptr; // the innermost declaration now in scope
  const char *getNameStart() const { return reinterpret_cast<const char *>(this + 1); }
  StringRef getName() const { return StringRef(getNameStart(), Length); }
  IdentifierInfo() : TokenID(tok::identifier), IsKeyword(0), OutOfDate(0), Length(0) {}
};

class IdentifierTable {
  IdentifierInfo *HashTable[2048] = {};
  unsigned NumItems = 0;

public:
  NOINLINE IdentifierInfo &get(StringRef Name) {
    IdentifierInfo *&Bucket = HashTable[hashString(Name) & 2047];
    for (IdentifierInfo *II = Bucket; II; II = II->NextInBucket)
      if (II->getName().equals(Name)) return *II;
    char *Mem = static_cast<char *>(malloc(sizeof(IdentifierInfo) + Name.size() + 1));
    tr_region("ls::IdentifierInfo", Mem, sizeof(IdentifierInfo), sizeof(IdentifierInfo));
    tr_region("char", Mem + sizeof(IdentifierInfo), Name.size() + 1, 1);
    auto *II = new (Mem) IdentifierInfo();
    memcpy(Mem + sizeof(IdentifierInfo), Name.data(), Name.size());
    Mem[sizeof(IdentifierInfo) + Name.size()] = 0;
    II->Length = unsigned(Name.size());
    II->NextInBucket = Bucket;
    Bucket = II;
    ++NumItems;
    return *II;
  }
  unsigned size() const { return NumItems; }
};

using SourceLocation = unsigned;

struct Token {
  SourceLocation Loc = 0;
  unsigned short Length = 0;
  tok::TokenKind Kind = tok::eof;
  IdentifierInfo *II = nullptr;
  bool is(tok::TokenKind K) const { return Kind == K; }
};

struct CharInfo {
  unsigned char Bits[256] = {};
  enum { Ident = 1, Digit = 2, Space = 4 };
  CharInfo() {
    for (int C = 0; C < 256; ++C) {
      if ((C >= 'a' && C <= 'z') || (C >= 'A' && C <= 'Z') || C == '_') Bits[C] |= Ident;
      if (C >= '0' && C <= '9') Bits[C] |= Digit;
      if (C == ' ' || C == '\n') Bits[C] |= Space;
    }
  }
};
static CharInfo Chars;

class Lexer {
  IdentifierTable &Identifiers;
  const char *BufferStart, *BufferPtr, *BufferEnd;

public:
  Lexer(IdentifierTable &Ids, StringRef Buffer) : Identifiers(Ids), BufferStart(Buffer.data()), BufferPtr(Buffer.data()), BufferEnd(Buffer.data() + Buffer.size()) {}
  NOINLINE void Lex(Token &Result) {
    const char *CurPtr = BufferPtr;
    while (CurPtr != BufferEnd && (Chars.Bits[static_cast<unsigned char>(*CurPtr)] & CharInfo::Space)) ++CurPtr;
    const char *TokStart = CurPtr;
    Result.Loc = SourceLocation(TokStart - BufferStart);
    Result.II = nullptr;
    if (CurPtr == BufferEnd) Result.Kind = tok::eof;
    else if (Chars.Bits[static_cast<unsigned char>(*CurPtr)] & CharInfo::Ident) {
      while (CurPtr != BufferEnd && (Chars.Bits[static_cast<unsigned char>(*CurPtr)] & (CharInfo::Ident | CharInfo::Digit))) ++CurPtr;
      Result.II = &Identifiers.get(StringRef(TokStart, size_t(CurPtr - TokStart)));
      ++Result.II->NumUses;
      Result.Kind = tok::TokenKind(Result.II->TokenID);
    } else if (Chars.Bits[static_cast<unsigned char>(*CurPtr)] & CharInfo::Digit) {
      while (CurPtr != BufferEnd && (Chars.Bits[static_cast<unsigned char>(*CurPtr)] & CharInfo::Digit)) ++CurPtr;
      Result.Kind = tok::numeric;
    } else {
      static const char Punctuation[] = "{}();,.+*<=";
      const char *P = strchr(Punctuation, *CurPtr++);
      Result.Kind = tok::TokenKind(tok::l_brace + (P ? P - Punctuation : 4));
    }
    Result.Length = static_cast<unsigned short>(CurPtr - TokStart);
    BufferPtr = CurPtr;
  }
};

//===-- Declarations and statements ---------------------------------------===//

class DeclContext;

class Decl {
public:
  enum Kind { Namespace, Record, Field, Function, Var };

protected:
  Decl *NextInContext = nullptr;
  DeclContext *DeclCtx;
  SourceLocation Loc;
  unsigned DeclKind : 7;
  unsigned InvalidDecl : 1;
  unsigned Referenced : 1;
  unsigned Refs : 20;
  friend class DeclContext;

public:
  Decl(Kind K, DeclContext *DC, SourceLocation L) : DeclCtx(DC), Loc(L), DeclKind(K), InvalidDecl(0), Referenced(0), Refs(0) {}
  Kind getKind() const { return Kind(DeclKind); }
  SourceLocation getLocation() const { return Loc; }
  DeclContext *getDeclContext() const { return DeclCtx; }
  Decl *getNextDeclInContext() const { return NextInContext; }
  void markUsed() { Referenced = 1, ++Refs; }
  unsigned useCount() const { return Refs; }
};

class NamedDecl : public Decl {
  IdentifierInfo *Name;

public:
  NamedDecl *Shadowed = nullptr;
  NamedDecl(Kind K, DeclContext *DC, SourceLocation L, IdentifierInfo *N) : Decl(K, DC, L), Name(N) {}
  IdentifierInfo *getIdentifier() const { return Name; }
};

class DeclContext {
  Decl *FirstDecl = nullptr, *LastDecl = nullptr;
  mutable DenseMap<IdentifierInfo *, NamedDecl *> *LookupPtr = nullptr;
  unsigned NumDecls = 0;

public:
  const NamedDecl *Self;
  explicit DeclContext(const NamedDecl *D) : Self(D) {}
  void addDecl(NamedDecl *D) {
    if (LastDecl) LastDecl->NextInContext = D;
    else FirstDecl = D;
    LastDecl = D;
    ++NumDecls;
    if (LookupPtr) (*LookupPtr)[D->getIdentifier()] = D;
  }
  Decl *decls_begin() const { return FirstDecl; }
  NOINLINE NamedDecl *lookup(IdentifierInfo *II) const {
    if (!LookupPtr && NumDecls > 4) {
      heap::Of<DenseMap<IdentifierInfo *, NamedDecl *>> Scope;
      LookupPtr = new DenseMap<IdentifierInfo *, NamedDecl *>();
      for (Decl *D = FirstDecl; D; D = D->getNextDeclInContext()) (*LookupPtr)[static_cast<NamedDecl *>(D)->getIdentifier()] = static_cast<NamedDecl *>(D);
    }
    if (LookupPtr) {
      NamedDecl **Found = LookupPtr->find(II);
      return Found ? *Found : nullptr;
    }
    for (Decl *D = FirstDecl; D; D = D->getNextDeclInContext())
      if (static_cast<NamedDecl *>(D)->getIdentifier() == II) return static_cast<NamedDecl *>(D);
    return nullptr;
  }
  void destroyLookup() {
    delete LookupPtr;
    LookupPtr = nullptr;
  }
};

class NamespaceDecl : public NamedDecl, public DeclContext {
public:
  NamespaceDecl(DeclContext *DC, SourceLocation L, IdentifierInfo *N) : NamedDecl(Namespace, DC, L, N), DeclContext(this) {}
  static bool classof(const Decl *D) { return D->getKind() == Namespace; }
};

class RecordDecl : public NamedDecl, public DeclContext {
public:
  unsigned NumFields = 0, SizeInBits = 0;
  RecordDecl(DeclContext *DC, SourceLocation L, IdentifierInfo *N) : NamedDecl(Record, DC, L, N), DeclContext(this) {}
  static bool classof(const Decl *D) { return D->getKind() == Record; }
};

class ValueDecl : public NamedDecl {
public:
  const RecordDecl *Type; // null: a number
  ValueDecl(Kind K, DeclContext *DC, SourceLocation L, IdentifierInfo *N, const RecordDecl *T) : NamedDecl(K, DC, L, N), Type(T) {}
  static bool classof(const Decl *D) { return D->getKind() >= Field; }
};

class FieldDecl : public ValueDecl {
public:
  unsigned BitOffset;
  FieldDecl(DeclContext *DC, SourceLocation L, IdentifierInfo *N, const RecordDecl *T, unsigned Offset) : ValueDecl(Field, DC, L, N, T), BitOffset(Offset) {}
  static bool classof(const Decl *D) { return D->getKind() == Field; }
};

class Stmt;

class FunctionDecl : public ValueDecl, public DeclContext {
public:
  Stmt *Body = nullptr;
  unsigned NumParams = 0, Complexity = 0;
  FunctionDecl(DeclContext *DC, SourceLocation L, IdentifierInfo *N, const RecordDecl *T) : ValueDecl(Function, DC, L, N, T), DeclContext(this) {}
  static bool classof(const Decl *D) { return D->getKind() == Function; }
};

class VarDecl : public ValueDecl {
public:
  unsigned ScopeDepth;
  VarDecl(DeclContext *DC, SourceLocation L, IdentifierInfo *N, const RecordDecl *T, unsigned Depth) : ValueDecl(Var, DC, L, N, T), ScopeDepth(Depth) {}
  static bool classof(const Decl *D) { return D->getKind() == Var; }
};

template <class To, class From> bool isa(const From *V) { return To::classof(V); }
template <class To, class From> To *dyn_cast(From *V) { return V && To::classof(V) ? static_cast<To *>(V) : nullptr; }

class Stmt {
public:
  enum StmtClass { Compound, If, Return, DeclS, IntLit, DeclRef, Member, Call, Binary };

protected:
  union {
    unsigned AllBits;
    struct { unsigned SClass : 8, NumStmts : 24; } CompoundBits;
    struct { unsigned SClass : 8, Opcode : 6, Depth : 18; } BinaryBits;
    struct { unsigned SClass : 8, HadMultiple : 1, ValueKind : 2; } DeclRefBits;
    struct { unsigned SClass : 8; } StmtBits;
  };
  SourceLocation Loc;

public:
  Stmt(StmtClass SC, SourceLocation L) : AllBits(0), Loc(L) { StmtBits.SClass = SC; }
  StmtClass getStmtClass() const { return StmtClass(StmtBits.SClass); }
  SourceLocation getBeginLoc() const { return Loc; }
  Stmt *Next = nullptr; // in what it is a part of
};

struct CompoundStmt : Stmt {
  Stmt *First = nullptr, *Last = nullptr;
  explicit CompoundStmt(SourceLocation L) : Stmt(Compound, L) {}
  void add(Stmt *S) {
    (Last ? Last->Next : First) = S;
    Last = S;
    CompoundBits.NumStmts = CompoundBits.NumStmts + 1;
  }
};
struct IfStmt : Stmt {
  Stmt *Cond, *Then;
  IfStmt(SourceLocation L, Stmt *C, Stmt *T) : Stmt(If, L), Cond(C), Then(T) {}
};
struct ReturnStmt : Stmt {
  Stmt *Value;
  ReturnStmt(SourceLocation L, Stmt *V) : Stmt(Return, L), Value(V) {}
};
struct DeclStmt : Stmt {
  VarDecl *D;
  Stmt *Init;
  DeclStmt(SourceLocation L, VarDecl *V, Stmt *I) : Stmt(DeclS, L), D(V), Init(I) {}
};
struct IntegerLiteral : Stmt {
  uint64_t Value;
  IntegerLiteral(SourceLocation L, uint64_t V) : Stmt(IntLit, L), Value(V) {}
};
struct DeclRefExpr : Stmt {
  NamedDecl *D;
  DeclRefExpr(SourceLocation L, NamedDecl *Named) : Stmt(DeclRef, L), D(Named) { DeclRefBits.ValueKind = Named ? 1 : 0; }
};
struct MemberExpr : Stmt {
  Stmt *Base;
  NamedDecl *MemberDecl;
  MemberExpr(SourceLocation L, Stmt *B, NamedDecl *M) : Stmt(Member, L), Base(B), MemberDecl(M) {}
};
struct CallExpr : Stmt {
  Stmt *Callee, *FirstArg = nullptr;
  unsigned NumArgs = 0;
  CallExpr(SourceLocation L, Stmt *C) : Stmt(Call, L), Callee(C) {}
};
struct BinaryOperator : Stmt {
  Stmt *LHS, *RHS;
  BinaryOperator(SourceLocation L, unsigned Opc, Stmt *A, Stmt *B) : Stmt(Binary, L), LHS(A), RHS(B) { BinaryBits.Opcode = Opc & 63; }
  unsigned getOpcode() const { return BinaryBits.Opcode; }
};

class ASTContext {
public:
  SpecificBumpPtrAllocator<NamespaceDecl> Namespaces;
  SpecificBumpPtrAllocator<RecordDecl> Records;
  SpecificBumpPtrAllocator<FieldDecl> Fields;
  SpecificBumpPtrAllocator<FunctionDecl> Functions;
  SpecificBumpPtrAllocator<VarDecl> Vars;
  SpecificBumpPtrAllocator<CompoundStmt> Compounds;
  SpecificBumpPtrAllocator<IfStmt> Ifs;
  SpecificBumpPtrAllocator<ReturnStmt> Returns;
  SpecificBumpPtrAllocator<DeclStmt> DeclStmts;
  SpecificBumpPtrAllocator<IntegerLiteral> Literals;
  SpecificBumpPtrAllocator<DeclRefExpr> DeclRefs;
  SpecificBumpPtrAllocator<MemberExpr> Members;
  SpecificBumpPtrAllocator<CallExpr> Calls;
  SpecificBumpPtrAllocator<BinaryOperator> Binaries;
  NamespaceDecl *TU = nullptr;

  void Reset(IdentifierInfo *Root) {
    if (TU) destroyLookups(TU);
    Namespaces.Reset(), Records.Reset(), Fields.Reset(), Functions.Reset(), Vars.Reset(), Compounds.Reset(), Ifs.Reset();
    Returns.Reset(), DeclStmts.Reset(), Literals.Reset(), DeclRefs.Reset(), Members.Reset(), Calls.Reset(), Binaries.Reset();
    TU = Namespaces.create(nullptr, 0, Root);
  }
  static void destroyLookups(DeclContext *DC) {
    DC->destroyLookup();
    for (Decl *D = DC->decls_begin(); D; D = D->getNextDeclInContext()) {
      if (auto *N = dyn_cast<NamespaceDecl>(D)) destroyLookups(N);
      else if (auto *R = dyn_cast<RecordDecl>(D)) R->destroyLookup();
      else if (auto *F = dyn_cast<FunctionDecl>(D)) F->destroyLookup();
    }
  }
};

//===-- Parsing -----------------------------------------------------------===//

struct Diagnostic {
  SourceLocation Loc;
  enum Level : unsigned { Note, Warning, Error } Severity;
  const IdentifierInfo *Name;
};

class Parser {
  Lexer Lex;
  ASTContext &Ctx;
  const ASTContext *Header;
  Vector<Diagnostic> &Diags;
  Token Tok;
  DeclContext *CurContext = nullptr;
  unsigned Depth = 0;
  SmallVector<NamedDecl *, 16> InScope; // what to take out of scope again

  void consume() { Lex.Lex(Tok); }
  bool tryConsume(tok::TokenKind K) {
    if (!Tok.is(K)) return false;
    consume();
    return true;
  }
  void skipUntil(tok::TokenKind K) {
    while (!Tok.is(tok::eof) && !Tok.is(K)) consume();
    tryConsume(K);
  }
  void declare(NamedDecl *D) {
    CurContext->addDecl(D);
    D->Shadowed = D->getIdentifier()->FETokenInfo;
    D->getIdentifier()->FETokenInfo = D;
    InScope.push_back(D);
  }
  void popScope(unsigned To) {
    while (InScope.size() > To) {
      NamedDecl *D = InScope.pop_back_val();
      D->getIdentifier()->FETokenInfo = D->Shadowed;
    }
  }
  NOINLINE NamedDecl *lookupQuietly(IdentifierInfo *II) {
    if (II->FETokenInfo) return II->FETokenInfo;
    if (Header)
      for (Decl *D = Header->TU->decls_begin(); D; D = D->getNextDeclInContext())
        if (auto *N = dyn_cast<NamespaceDecl>(D))
          if (NamedDecl *Found = N->lookup(II)) return Found;
    return nullptr;
  }
  NamedDecl *lookupName(IdentifierInfo *II, SourceLocation Loc) {
    NamedDecl *Found = lookupQuietly(II);
    if (!Found) Diags.push_back({Loc, Diagnostic::Error, II});
    return Found;
  }
  const RecordDecl *parseType() {
    if (tryConsume(tok::kw_int)) return nullptr;
    NamedDecl *D = Tok.II ? lookupName(Tok.II, Tok.Loc) : nullptr;
    if (D) D->markUsed();
    consume();
    return dyn_cast<RecordDecl>(static_cast<Decl *>(D));
  }
  static const RecordDecl *typeOf(const Stmt *E) {
    if (E->getStmtClass() == Stmt::DeclRef) {
      const NamedDecl *D = static_cast<const DeclRefExpr *>(E)->D;
      return D && ValueDecl::classof(D) ? static_cast<const ValueDecl *>(D)->Type : nullptr;
    }
    if (E->getStmtClass() == Stmt::Member) {
      const NamedDecl *D = static_cast<const MemberExpr *>(E)->MemberDecl;
      return D ? static_cast<const ValueDecl *>(D)->Type : nullptr;
    }
    return E->getStmtClass() == Stmt::Call ? typeOf(static_cast<const CallExpr *>(E)->Callee) : nullptr;
  }
  NOINLINE Stmt *parsePrimary() {
    SourceLocation Loc = Tok.Loc;
    Stmt *E;
    if (Tok.is(tok::numeric)) {
      E = Ctx.Literals.create(Loc, Tok.Length);
      consume();
      return E;
    }
    if (!Tok.II) {
      consume();
      return Ctx.Literals.create(Loc, 0u);
    }
    NamedDecl *D = lookupName(Tok.II, Loc);
    if (D) D->markUsed();
    consume();
    E = Ctx.DeclRefs.create(Loc, D);
    while (Tok.is(tok::period) || Tok.is(tok::l_paren)) {
      Loc = Tok.Loc;
      if (tryConsume(tok::period)) {
        const RecordDecl *R = typeOf(E);
        NamedDecl *M = R && Tok.II ? R->lookup(Tok.II) : nullptr;
        if (M) M->markUsed();
        else Diags.push_back({Loc, Diagnostic::Warning, Tok.II});
        consume();
        E = Ctx.Members.create(Loc, E, M);
        continue;
      }
      consume();
      CallExpr *C = Ctx.Calls.create(Loc, E);
      Stmt **Last = &C->FirstArg;
      while (!Tok.is(tok::r_paren) && !Tok.is(tok::eof)) {
        *Last = parseExpr(0);
        Last = &(*Last)->Next;
        ++C->NumArgs;
        if (!tryConsume(tok::comma)) break;
      }
      tryConsume(tok::r_paren);
      E = C;
    }
    return E;
  }
  Stmt *parseExpr(unsigned MinPrec) {
    Stmt *LHS = parsePrimary();
    while (true) {
      unsigned Prec = Tok.is(tok::star) ? 4 : Tok.is(tok::plus) ? 3 : Tok.is(tok::less) ? 2 : Tok.is(tok::equal) ? 1 : 0;
      if (!Prec || Prec <= MinPrec) return LHS;
      SourceLocation Loc = Tok.Loc;
      unsigned Opc = Tok.Kind;
      consume();
      LHS = Ctx.Binaries.create(Loc, Opc, LHS, parseExpr(Prec == 1 ? 0 : Prec));
    }
  }
  NOINLINE Stmt *parseStmt() {
    SourceLocation Loc = Tok.Loc;
    if (tryConsume(tok::l_brace)) return parseCompound(Loc);
    if (tryConsume(tok::kw_if)) {
      tryConsume(tok::l_paren);
      Stmt *Cond = parseExpr(0);
      tryConsume(tok::r_paren);
      return Ctx.Ifs.create(Loc, Cond, parseStmt());
    }
    if (tryConsume(tok::kw_return)) {
      Stmt *V = parseExpr(0);
      skipUntil(tok::semi);
      return Ctx.Returns.create(Loc, V);
    }
    NamedDecl *First = Tok.is(tok::identifier) ? lookupQuietly(Tok.II) : nullptr;
    bool IsDecl = Tok.is(tok::kw_int) || (First && isa<RecordDecl>(First));
    if (!IsDecl) {
      Stmt *E = parseExpr(0);
      skipUntil(tok::semi);
      return E;
    }
    const RecordDecl *T = parseType();
    VarDecl *V = Ctx.Vars.create(CurContext, Tok.Loc, Tok.II ? Tok.II : Ctx.TU->getIdentifier(), T, Depth);
    consume();
    Stmt *Init = tryConsume(tok::equal) ? parseExpr(0) : nullptr;
    skipUntil(tok::semi);
    declare(V);
    return Ctx.DeclStmts.create(Loc, V, Init);
  }
  CompoundStmt *parseCompound(SourceLocation Loc) {
    CompoundStmt *C = Ctx.Compounds.create(Loc);
    ++Depth;
    while (!Tok.is(tok::r_brace) && !Tok.is(tok::eof)) C->add(parseStmt());
    consume();
    --Depth;
    return C;
  }
  void parseRecord(SourceLocation Loc) {
    RecordDecl *R = Ctx.Records.create(CurContext, Loc, Tok.II ? Tok.II : Ctx.TU->getIdentifier());
    consume();
    declare(R);
    tryConsume(tok::l_brace);
    while (!Tok.is(tok::r_brace) && !Tok.is(tok::eof)) {
      const RecordDecl *T = parseType();
      if (Tok.II) {
        R->addDecl(Ctx.Fields.create(R, Tok.Loc, Tok.II, T, R->SizeInBits));
        R->SizeInBits += T ? T->SizeInBits : 32;
        ++R->NumFields;
      }
      skipUntil(tok::semi);
    }
    consume();
    tryConsume(tok::semi);
  }

public:
  Parser(IdentifierTable &Ids, StringRef Text, ASTContext &C, const ASTContext *H, Vector<Diagnostic> &D) : Lex(Ids, Text), Ctx(C), Header(H), Diags(D) {}
  NOINLINE void parseDecls(DeclContext *DC) {
    DeclContext *Outer = CurContext;
    CurContext = DC;
    while (!Tok.is(tok::r_brace) && !Tok.is(tok::eof)) {
      SourceLocation Loc = Tok.Loc;
      if (tryConsume(tok::kw_namespace)) {
        NamespaceDecl *N = Ctx.Namespaces.create(DC, Tok.Loc, Tok.II ? Tok.II : Ctx.TU->getIdentifier());
        consume();
        DC->addDecl(N);
        tryConsume(tok::l_brace);
        parseDecls(N);
        tryConsume(tok::r_brace);
        continue;
      }
      if (tryConsume(tok::kw_struct)) {
        parseRecord(Loc);
        continue;
      }
      const RecordDecl *T = parseType();
      if (!Tok.II) {
        skipUntil(tok::r_brace);
        continue;
      }
      FunctionDecl *F = Ctx.Functions.create(DC, Tok.Loc, Tok.II, T);
      consume();
      declare(F);
      tryConsume(tok::l_paren);
      unsigned Before = InScope.size();
      CurContext = F;
      while (!Tok.is(tok::r_paren) && !Tok.is(tok::eof)) {
        const RecordDecl *PT = parseType();
        declare(Ctx.Vars.create(F, Tok.Loc, Tok.II ? Tok.II : Ctx.TU->getIdentifier(), PT, 0u));
        consume();
        ++F->NumParams;
        if (!tryConsume(tok::comma)) break;
      }
      tryConsume(tok::r_paren);
      if (Tok.is(tok::l_brace)) {
        SourceLocation BodyLoc = Tok.Loc;
        consume();
        F->Body = parseCompound(BodyLoc);
      } else skipUntil(tok::semi);
      CurContext = DC;
      popScope(Before);
    }
    CurContext = Outer;
  }
  void parse() {
    consume();
    parseDecls(Ctx.TU);
    popScope(0);
  }
};

//===-- Walking and indexing ----------------------------------------------===//

template <typename Derived> class RecursiveASTVisitor {
  Derived &derived() { return *static_cast<Derived *>(this); }

public:
  void TraverseStmt(Stmt *S) {
    for (; S; S = S->Next) {
      switch (S->getStmtClass()) {
      case Stmt::Compound: TraverseStmt(static_cast<CompoundStmt *>(S)->First); break;
      case Stmt::If:
        TraverseStmt(static_cast<IfStmt *>(S)->Cond);
        TraverseStmt(static_cast<IfStmt *>(S)->Then);
        break;
      case Stmt::Return: TraverseStmt(static_cast<ReturnStmt *>(S)->Value); break;
      case Stmt::DeclS:
        derived().VisitDecl(static_cast<DeclStmt *>(S)->D);
        TraverseStmt(static_cast<DeclStmt *>(S)->Init);
        break;
      case Stmt::IntLit: derived().VisitLiteral(static_cast<IntegerLiteral *>(S)); break;
      case Stmt::DeclRef: derived().VisitRef(static_cast<DeclRefExpr *>(S)->D, S->getBeginLoc()); break;
      case Stmt::Member:
        TraverseStmt(static_cast<MemberExpr *>(S)->Base);
        derived().VisitRef(static_cast<MemberExpr *>(S)->MemberDecl, S->getBeginLoc());
        break;
      case Stmt::Call:
        TraverseStmt(static_cast<CallExpr *>(S)->Callee);
        TraverseStmt(static_cast<CallExpr *>(S)->FirstArg);
        break;
      case Stmt::Binary:
        TraverseStmt(static_cast<BinaryOperator *>(S)->LHS);
        TraverseStmt(static_cast<BinaryOperator *>(S)->RHS);
        break;
      }
    }
  }
  void TraverseDecl(Decl *D) {
    derived().VisitDecl(static_cast<NamedDecl *>(D));
    DeclContext *DC = nullptr;
    if (auto *N = dyn_cast<NamespaceDecl>(D)) DC = N;
    else if (auto *R = dyn_cast<RecordDecl>(D)) DC = R;
    else if (auto *F = dyn_cast<FunctionDecl>(D)) {
      for (Decl *P = F->decls_begin(); P && P->getLocation() < (F->Body ? F->Body->getBeginLoc() : ~0U); P = P->getNextDeclInContext()) TraverseDecl(P);
      if (F->Body) TraverseStmt(F->Body);
    }
    for (Decl *I = DC ? DC->decls_begin() : nullptr; I; I = I->getNextDeclInContext()) TraverseDecl(I);
  }
};

using SymbolID = uint64_t;

struct Symbol {
  String Name, Scope;
  SymbolID ID = 0;
  Decl::Kind SymKind = Decl::Var;
  unsigned short FileNo = 0;
  bool Dead = false;
  unsigned Loc = 0, References = 0;
  float Quality = 0;
};

struct Ref {
  unsigned Loc;
  unsigned short FileNo;
  bool IsDecl;
};

struct SymbolIDHash {
  size_t operator()(SymbolID ID) const { return size_t(ID ^ ID >> 31); }
};

class SymbolIndex {
public:
  std::unordered_map<SymbolID, Symbol, SymbolIDHash, std::equal_to<SymbolID>, heap::Alloc<std::pair<const SymbolID, Symbol>>> Symbols;
  OrderedMap<SymbolID, Vector<Ref>> References;
  DenseMap<unsigned, Vector<Symbol *>> Trigrams;

  static unsigned trigram(const char *P) { return unsigned(P[0] | 32) << 16 | unsigned(P[1] | 32) << 8 | unsigned(P[2] | 32); }
  NOINLINE void addSymbol(const NamedDecl *D, SymbolID ID, const String &Scope, unsigned FileNo) {
    Symbol &S = Symbols[ID];
    S.FileNo = static_cast<unsigned short>(FileNo);
    S.Loc = D->getLocation();
    S.References = D->useCount();
    S.Quality = float(S.References) + (D->getKind() == Decl::Function ? 3.0f : 1.0f);
    S.Dead = false;
    if (S.ID) return;
    S.ID = ID;
    S.SymKind = D->getKind();
    S.Name = D->getIdentifier()->getName().str();
    S.Scope = Scope;
    for (size_t I = 0; I + 3 <= S.Name.size(); ++I) Trigrams[trigram(S.Name.data() + I)].push_back(&S);
  }
  void addRef(SymbolID ID, Ref R) { References[ID].push_back(R); }
  NOINLINE void removeFile(unsigned FileNo) {
    for (auto &[ID, S] : Symbols)
      if (S.FileNo == FileNo) S.Dead = true;
    for (auto &[ID, Refs] : References)
      Refs.erase(std::remove_if(Refs.begin(), Refs.end(), [&](const Ref &R) { return R.FileNo == FileNo; }), Refs.end());
  }
};

class IndexingVisitor : public RecursiveASTVisitor<IndexingVisitor> {
  SymbolIndex &Index;
  unsigned FileNo;
  DenseMap<NamedDecl *, SymbolID> IDs;
  String Scratch;

public:
  uint64_t Literals = 0;
  IndexingVisitor(SymbolIndex &I, unsigned F) : Index(I), FileNo(F) {}
  NOINLINE SymbolID getSymbolID(NamedDecl *D) {
    if (SymbolID *Known = IDs.find(D)) return *Known;
    SymbolID ID = 0xcbf29ce484222325u + D->getKind();
    StringRef Name = D->getIdentifier()->getName();
    for (size_t I = 0; I != Name.size(); ++I) ID = (ID ^ static_cast<unsigned char>(Name[I])) * 0x100000001b3u;
    for (const DeclContext *DC = D->getDeclContext(); DC; DC = DC->Self->getDeclContext()) ID = (ID ^ DC->Self->getIdentifier()->Length) * 31 + DC->Self->getIdentifier()->getNameStart()[0];
    IDs[D] = ID;
    return ID;
  }
  void VisitDecl(NamedDecl *D) {
    SymbolID ID = getSymbolID(D);
    Scratch.clear();
    for (const DeclContext *DC = D->getDeclContext(); DC; DC = DC->Self->getDeclContext()) {
      StringRef Outer = DC->Self->getIdentifier()->getName();
      Scratch.append(Outer.data(), Outer.size());
      Scratch += "::";
    }
    if (D->getKind() != Decl::Var) Index.addSymbol(D, ID, Scratch, FileNo);
    Index.addRef(ID, {D->getLocation(), static_cast<unsigned short>(FileNo), true});
  }
  void VisitRef(NamedDecl *D, SourceLocation Loc) {
    if (D) Index.addRef(getSymbolID(D), {Loc, static_cast<unsigned short>(FileNo), false});
  }
  void VisitLiteral(const IntegerLiteral *L) { Literals += L->Value; }
};

class ComplexityVisitor : public RecursiveASTVisitor<ComplexityVisitor> {
public:
  unsigned Count = 0;
  void VisitDecl(NamedDecl *) { ++Count; }
  void VisitRef(NamedDecl *D, SourceLocation) { Count += D ? D->useCount() & 1 : 2; }
  void VisitLiteral(const IntegerLiteral *) {}
};

//===-- Fuzzy matching ----------------------------------------------------===//

class FuzzyMatcher {
  static constexpr int MaxPat = 16, MaxWord = 32;
  enum CharRole : unsigned char { Unset, Head, Tail, Separator };
  struct ScoreInfo {
    signed int Score : 15;
    unsigned Prev : 1;
  };
  char Pat[MaxPat], Word[MaxWord], LowPat[MaxPat], LowWord[MaxWord];
  CharRole WordRole[MaxWord];
  int PatN, WordN = 0;
  ScoreInfo Scores[MaxPat + 1][MaxWord + 1][2];

public:
  explicit FuzzyMatcher(StringRef Pattern) : PatN(std::min<int>(MaxPat, int(Pattern.size()))) {
    for (int I = 0; I < PatN; ++I) {
      Pat[I] = Pattern[size_t(I)];
      LowPat[I] = char(Pat[I] | 32);
    }
  }
  NOINLINE float match(StringRef Name) {
    WordN = std::min<int>(MaxWord, int(Name.size()));
    for (int I = 0; I < WordN; ++I) {
      Word[I] = Name[size_t(I)];
      LowWord[I] = char(Word[I] | 32);
      bool Upper = Word[I] >= 'A' && Word[I] <= 'Z';
      WordRole[I] = Word[I] == '_' ? Separator : I == 0 || Upper || WordRole[I - 1] == Separator ? Head : Tail;
    }
    int P = 0;
    for (int I = 0; I < WordN && P < PatN; ++I) P += LowWord[I] == LowPat[P];
    if (P < PatN) return -1;
    for (int W = 0; W <= WordN; ++W) Scores[0][W][0].Score = 0, Scores[0][W][1].Score = -8000;
    for (int I = 1; I <= PatN; ++I) {
      Scores[I][0][0].Score = Scores[I][0][1].Score = -8000;
      for (int W = 1; W <= WordN; ++W) {
        ScoreInfo *Cell = Scores[I][W], *Left = Scores[I][W - 1], *Diagonal = Scores[I - 1][W - 1];
        int MissMiss = Left[0].Score - (WordRole[W - 1] == Head), MissMatch = Left[1].Score - 1;
        Cell[0].Score = std::max(MissMiss, MissMatch);
        Cell[0].Prev = MissMatch > MissMiss;
        int Bonus = LowPat[I - 1] != LowWord[W - 1] ? -8000 : 1 + (Pat[I - 1] == Word[W - 1]) + 2 * (WordRole[W - 1] == Head);
        int FromMiss = std::max(-8000, Diagonal[0].Score + Bonus), FromMatch = std::max(-8000, Diagonal[1].Score + Bonus + 2);
        Cell[1].Score = std::max(FromMiss, FromMatch);
        Cell[1].Prev = FromMatch >= FromMiss;
      }
    }
    int Best = std::max<int>(Scores[PatN][WordN][0].Score, Scores[PatN][WordN][1].Score);
    return Best < -1000 ? -1 : float(Best + 8) / float(4 * PatN + 8);
  }
};

//===-- The server --------------------------------------------------------===//

struct Completion {
  float Score;
  const Symbol *Sym;
  bool operator<(const Completion &RHS) const { return Score > RHS.Score || (Score == RHS.Score && Sym->ID < RHS.Sym->ID); }
};

struct FileState {
  String Text;
  ASTContext AST;
  Vector<Diagnostic> Diags;
  unsigned FileNo = 0, Version = 0;
};

struct FileEntry {
  std::unique_ptr<FileState> State;
};

class Server {
public:
  IdentifierTable Identifiers;
  SymbolIndex Index;
  OrderedMap<String, FileEntry> Files;
  FileState *Header = nullptr;
  uint64_t Parsed = 0, Completions = 0, DiagCount = 0;

  Server() {
    static const struct { const char *Name; tok::TokenKind Kind; } Keywords[] = {{"namespace", tok::kw_namespace}, {"struct", tok::kw_struct}, {"int", tok::kw_int}, {"if", tok::kw_if}, {"return", tok::kw_return}};
    for (auto &K : Keywords) {
      IdentifierInfo &II = Identifiers.get(K.Name);
      II.TokenID = K.Kind & 511;
      II.IsKeyword = 1;
    }
  }
  NOINLINE void update(FileState &F) {
    F.AST.Reset(&Identifiers.get("(root)"));
    F.Diags.clear();
    Parser P(Identifiers, F.Text, F.AST, &F == Header ? nullptr : &Header->AST, F.Diags);
    P.parse();
    if (F.Version++) Index.removeFile(F.FileNo);
    IndexingVisitor V(Index, F.FileNo);
    V.TraverseDecl(F.AST.TU);
    DiagCount += F.Diags.size() + V.Literals % 3;
    ++Parsed;
  }
  FileState &add(const char *Name, String Text) {
    auto &Slot = Files[String(Name)].State;
    Slot = heap::make<FileState>();
    Slot->Text = std::move(Text);
    Slot->FileNo = unsigned(Files.size());
    if (!Header) Header = Slot.get();
    update(*Slot);
    return *Slot;
  }
  NOINLINE float complete(StringRef Pattern) {
    std::priority_queue<Completion, Vector<Completion>> Top;
    if (Pattern.size() < 3) return 0;
    std::unique_ptr<FuzzyMatcher> Matcher = heap::make<FuzzyMatcher>(Pattern);
    const Vector<Symbol *> *Best = nullptr;
    for (size_t I = 0; I + 3 <= Pattern.size(); ++I) {
      const Vector<Symbol *> *List = Index.Trigrams.find(SymbolIndex::trigram(Pattern.data() + I));
      if (List && (!Best || List->size() < Best->size())) Best = List;
    }
    if (!Best) return 0;
    for (const Symbol *S : *Best) {
      if (S->Dead) continue;
      float Score = Matcher->match(S->Name);
      if (Score < 0) continue;
      Score *= 1 + S->Quality / (S->Quality + 10);
      Top.push({Score, S});
      if (Top.size() > 20) Top.pop();
    }
    float Sum = 0;
    for (; !Top.empty(); Top.pop()) Sum += Top.top().Score + float(Top.top().Sym->Scope.size() & 1);
    ++Completions;
    return Sum;
  }
  NOINLINE unsigned references(SymbolID ID) const {
    auto Found = Index.References.find(ID);
    if (Found == Index.References.end()) return 0;
    unsigned Sum = 0;
    for (const Ref &R : Found->second) Sum += R.IsDecl ? 1 : R.Loc & 7;
    return Sum;
  }
  NOINLINE const NamedDecl *hover(const FileState &F, SourceLocation At) const {
    const DeclContext *DC = F.AST.TU;
    const NamedDecl *Best = nullptr;
    while (DC) {
      const DeclContext *Inner = nullptr;
      for (Decl *D = DC->decls_begin(); D && D->getLocation() <= At; D = D->getNextDeclInContext()) {
        Best = static_cast<NamedDecl *>(D);
        if (auto *N = dyn_cast<NamespaceDecl>(D)) Inner = N;
        else if (auto *R = dyn_cast<RecordDecl>(D)) Inner = R;
        else if (auto *Fn = dyn_cast<FunctionDecl>(D)) Inner = Fn;
        else Inner = nullptr;
      }
      DC = Inner;
    }
    return Best;
  }
};

//===-- What is edited ----------------------------------------------------===//

static const char *const Parts[] = {"Buffer", "Token", "Node", "Parse", "Emit", "Value", "Block", "Scope", "Type", "Index", "Cache", "Graph", "Edge", "Stream", "Read", "Write", "Line", "Lookup", "Range", "Map"};

static String makeName(uint64_t R, unsigned Serial) {
  String Name = Parts[R % 20];
  Name += Parts[R / 20 % 20];
  return Name + std::to_string(Serial % 90).c_str();
}

static void makeFunction(String &Text, unsigned Serial, const Vector<String> &Types, const Vector<String> &Functions) {
  uint64_t R = tr_rand() >> 4;
  const String &T = Types[R % Types.size()], &G = Functions[(R >> 8) % Functions.size()], &H = Functions[(R >> 16) % Functions.size()];
  String Name = makeName(R >> 24, Serial);
  Text += "int " + Name + "(" + T + " first, int count) {\n  int total = first.size * 3 + count;\n  " + T + " copy = first;\n";
  for (unsigned I = 0; I < 2 + (R >> 32) % 4; ++I)
    Text += "  if (total < first.next" + String(std::to_string(I % 3).c_str()) + ") { total = total + " + G + "(copy, count * 2 + copy.size) + " + H + "(first, total); }\n  int local" + std::to_string(I).c_str() + " = total + " + (I ? "local0" : "count") + ";\n";
  Text += "  return total + missing" + String(R % 3 ? "" : "x") + ";\n}\n";
}

static String makeFile(unsigned FileNo, Vector<String> &Types, Vector<String> &Functions, bool IsHeader) {
  String Text = "namespace " + String(IsHeader ? "base" : "part") + std::to_string(FileNo).c_str() + " {\nint missing() { return 1; }\n";
  for (unsigned I = 0; I < (IsHeader ? 40u : 3u); ++I) {
    String Name = makeName(tr_rand() >> 8, FileNo + I);
    Text += "struct " + Name + " { int size; int next0; int next1; int next2; " + (Types.empty() ? "int" : Types[I % Types.size()]) + " inner; };\n";
    if (IsHeader) Types.push_back(Name);
  }
  if (Functions.empty()) Functions.push_back("missing");
  for (unsigned I = 0; I < (IsHeader ? 60u : 14u); ++I) {
    size_t Before = Text.size();
    makeFunction(Text, FileNo * 16 + I, Types, Functions);
    if (IsHeader) Functions.push_back(Text.substr(Before + 4, Text.find('(', Before) - Before - 4));
  }
  return Text + "}\n";
}

} // namespace ls

int main(int argc, char **argv) {
  using namespace ls;
  tr_init(argc, argv);
  static Server S;
  TR_GLOBALX(S);
  TR_GLOBAL(Chars, "ls::CharInfo");
  Vector<String> Types, Functions;
  double Sum = 0;
  for (unsigned I = 0; I < 36; ++I) S.add(("dir/file" + std::to_string(I) + ".x").c_str(), makeFile(I, Types, Functions, I == 0));
  Vector<SymbolID> Known;
  for (auto &[ID, Sym] : S.Index.Symbols) Known.push_back(ID);
  std::sort(Known.begin(), Known.end());
  while (tr_more()) {
    uint64_t R = tr_rand() >> 6;
    auto It = std::next(S.Files.begin(), long(1 + R % 35));
    FileState &F = *It->second.State;
    size_t At = F.Text.find("  if (", R / 64 % F.Text.size());
    if (At != String::npos) { // a line is moved from one function to another
      size_t End = F.Text.find('\n', At), To = F.Text.find("  return", (R >> 20) % At);
      String Line = F.Text.substr(At, End + 1 - At);
      F.Text.erase(At, End + 1 - At);
      if (To < At) F.Text.insert(To, Line);
      else F.Text.insert(At, Line);
    }
    S.update(F);
    for (unsigned I = 0; I < 6; ++I) {
      String Pattern = Parts[(R >> I) % 20];
      Pattern += char('a' + (R >> 2 * I) % 8);
      Sum += double(S.complete(I % 2 ? StringRef(Pattern.data(), 4) : StringRef(Parts[(R >> I) % 20])));
    }
    for (unsigned I = 0; I < 80; ++I) Sum += S.references(Known[(tr_rand() >> 11) % Known.size()]);
    for (unsigned I = 0; I < 60; ++I)
      if (const NamedDecl *D = S.hover(F, unsigned(tr_rand() % F.Text.size()))) Sum += D->useCount();
    ComplexityVisitor C;
    C.TraverseDecl(F.AST.TU);
    Sum += C.Count;
  }
  if (getenv("SHOW"))
    fprintf(stderr, "sum %g parsed %lu completions %lu diagnostics %lu identifiers %u symbols %zu references %zu trigrams %u\n", Sum, S.Parsed, S.Completions, S.DiagCount, S.Identifiers.size(), S.Index.Symbols.size(), S.Index.References.size(), S.Index.Trigrams.size());
  tr_sink = uint64_t(Sum);
}
