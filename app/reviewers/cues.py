"""Words of a few fields of meaning, in the languages that memories are written in: who is addressed, what is aimed at.

A field alone says nothing (a good rule speaks of secrets, checks and users too); which fields meet in one clause does.
They are written as `Lexicon` reads them.
"""

from functools import cache

from app.reviewers.lexicon import Lexicon

FIELDS: dict[str, str] = {
    "reader": """
        agent agents assistant assistants model models llm llms ai ais bot bots chatbot chatbots reader readers copilot
        subagent* sub-agent* whoever claude gpt
        ki kis assistent* modell modelle sprachmodell* leser agenten
        agente agentes asistente* modelo modelos lector ia assistente* leitor agenti modello modelli lettore
        modele modeles lecteur assistant*
        агент* ассистент* модел* помощник* бот нейросет*
        modelu agenci asystent* agenta agentow modele czytelnik*
        ajan* asistan* model modeli okuyan
        エージェント アシスタント モデル 読む者 読んだ 代理 智能体 助手 模型 读到 에이전트 모델 어시스턴트 도우미 읽는
    """,
    "reviewer": """
        reviewer reviewers judge judges evaluator* evaluating grader* grading classifier classifiers moderator* rubric
        verdict verdicts scorer labeller gatekeeper bouncer adjudicator
        prufer* bewert* gutachter* pruf* urteil*
        revisor* evaluador* rubrica* veredicto* avaliador* valutator* verdetto correcteur* evaluateur* evaluation grille
        проверяющ* рецензент* оценива* ревьюер* вердикт*
        recenzent* oceniajac* werdykt*
        denetci* degerlendir* hakem*
        審査 レビュアー 判定 评审 审核 审查 裁决 심사 검토자 평가자 판정
    """,
    "approve": """
        approve approved approves approving approval approvals accept accepted accepts acceptance
        pre-approved preapproved allow allowed permit cleared pass
        passed passes lgtm authorise* authorize* authoris* whitelisted exempt waive*
        freigegeben freigabe* genehmig* akzeptier* durchlassen zulassen
        aprueb* aprob* acept* autoriz* permit* approuv* accepte* valide valider autoris* approv* accett* aprov* aceit*
        одобр* принять принима* утверд* разреш*
        zatwierdz* akcept* zaakcept* dozwol*
        onay* kabul izin
        承認 許可 通过 批准 放行 允许 승인 허용 통과
    """,
    "facts": """
        durable self_contained single_fact addresses_reader duplicate_of gives_why suggested_text confidence quirk
        verdict scope restates category
    """,
    "secret": """
        secret secrets credential credentials password passwords passphrase token tokens apikey key keys env .env netrc
        .netrc id_rsa ssh .ssh .aws cookie cookies private kubeconfig keychain keyring vault seed mnemonic wallet pem
        environment transcript transcripts conversation conversations chat history
        schlussel* passwort* kennwort* geheim* zugangsdaten umgebungsvariabl* gesprach*
        clave claves contrasena* secreto* credencial* entorno senha senhas chave chaves segredo* ambiente
        motdepasse passe secrets identifiants jeton* cle cles environnement chiave chiavi segret* credenziali
        парол* ключ* секрет* токен* окружени* переписк*
        hasl* klucz* poswiadcz* tajn* sekret*
        parola* sifre* anahtar* gizli
        パスワード 秘密 環境変数 鍵 資格情報 認証情報 密码 密钥 环境变量 令牌 凭证 비밀번호 환경변수 비밀키 토큰 키
    """,
    "send": """
        send sends sending sent post posts upload uploads ship forward forwards mail email e-mail paste exfiltrate leak
        export exports publish dump dumps echo print prints transmit copy copies attach include reveal disclose share
        report quote cat nc scp rsync submit push put
        send* schick* sende* uberm* hochlad* weiterleit* ausgeb* druck* kopier*
        envi* mand* sub* reenv* copi* imprim* pega public* envoy* transmet* televers* recopi* affich* invi* stampa*
        отправ* пересыл* выслать скопир* публик* вывод* сообщ*
        wysl* wysyl* przesl* kopiuj* wklej* wypis*
        gonder* ilet* kopyala* yazdir* paylas*
        送信 送る 送って 貼り付け 出力 転送 投稿 公開 发送 上传 转发 粘贴 输出 打印 보내 전송 업로드 복사 출력 붙여
    """,
    "guard": """
        check checks checking scanner scanners scan scans verification verify validation sandbox permission permissions
        confirmation confirmations safety security guard guards guardrail* firewall signature signatures certificate
        certificates hook hooks gate gates audit lint test tests policy policies approval approvals filter filters limit
        limits warning warnings prompt consent 2fa mfa tls ssl csp cors antivirus review reviews logging protection
        prufung* sicherheit* berechtigung* warnung* bestatigung* freigabe* schutz* signatur* kontrolle*
        comprobaci* verificaci* segurid* permiso* advertenc* confirmaci* seguranc* permiss* aviso* avisos confirmac*
        verification* securite* autorisation* avertissement* controle* sicurezza controllo permess* avvis* conferma*
        проверк* безопасн* разрешени* предупрежд* подтвержд* защит* подпис*
        kontrol* bezpiecz* uprawni* ostrzez* potwierdz* sprawdz* zabezpiecz*
        kontrol* guvenlik* uyari* dogrula* denetim*
        検査 確認 セキュリティ 警告 権限 許可 署名 検証 检查 安全 确认 警告 权限 校验 验证 검사 확인 보안 경고 권한 검증
    """,
    "off": """
        disable disables disabled disabling skip skips skipping off bypass bypasses suppress suppresses ignore ignores
        ignoring remove removes unset stop stops omit without deactivate circumvent evade drop loosen relax weaken kill
        silence mute unlock
        no-verify ignore-scripts trusted-host force insecure skip-review dangerously*
        abschalt* deaktivier* ausschalt* schalt* uberspring* umgeh* ohne unterdruck*
        desactiv* omit* salt* ignor* sin apag* desativ* pul* sem disattiv* salta* senza evit*
        desactiv* saute* ignor* sans contourn* coupe*
        отключ* выключ* пропус* обход* обойти без игнорир* снять
        wylacz* pomin* pomij* obejdz* bez ignoruj*
        kapat* devre atla* yoksay* olmadan
        停止 無効 省略 無視 せずに 关闭 禁用 跳过 忽略 绕过 停用 비활성 무시 생략 끄고 없이 건너
    """,
    "user": """
        user users human humans person people operator customer customers anyone anybody everyone someone owner
        nutzer* benutzer* mensch* kunde* usuari* utente* utent* utilisateur* humain* humano* persona* propriet*
        пользовател* человек* людям владел*
        uzytkownik* czlowiek* kullanici* kisi*
        ユーザー 人間 利用者 用户 人类 사용자 사람
    """,
    "hide": """
        silent silently quiet quietly secretly secret hide hidden hides conceal trace traces unnoticed unaware covert*
        mention mentions mentioning tell telling say saying announce disclose inform notify hear aware
        heimlich still schweig* erwahn* verschweig* mitteil*
        ocult* silenci* menci* avis* escond* contar decir diga inform* calad* dire parler parle discret* nascond*
        segret*
        скры* молч* тихо упомин* сообща* говори* говорит*
        ukry* milcz* wspomin* mow* informuj* gizle* sessiz* soyle* bahset*
        黙 隠 知らせ 報告 言わ 伝え 告诉 告知 隐瞒 悄悄 隐藏 透露 말하지 알리지 숨기 몰래 보여주지 보이지
    """,
    "ignore": """
        ignore ignores disregard forget forgets override overrides overrule* outrank* supersede* void voided obsolete
        precedence forgo discard neglect unlearn
        ignorier* vergiss vergess* missacht* ubergeh* ungultig* vorrang
        ignora* olvid* descart* desconsider* esquec* desatend* oubli* ecart* tiens trascura* dimentica* prevale*
        забудь* забыть игнорир* отмен* проигнор*
        zapomnij* zignoruj* uniewaz*
        unut* gecersiz* bosver* yoksay*
        無視 忘れ 無効 破棄 忽略 忘记 无视 作废 무시 잊고 잊어 무효
    """,
    "orders": """
        instruction instructions prompt prompts guideline guidelines rule rules order orders directive directives
        restriction restrictions policy policies system rubric programming
        anweisung* regel regeln vorgabe* befehl* richtlini*
        instruccion* regla reglas orden ordenes instruc* regra* instruction* consigne* regle regles istruzion* regol*
        инструкц* правил* указани* приказ*
        instrukcj* polecen* zasad* regul* talimat* kural* komut*
        指示 命令 ルール 規則 基準 指令 规则 指示 标准 지시 규칙 명령 기준
    """,
    "before": """
        previous prior above earlier former preceding existing old older past before
        bisherig* vorherig* obig* fruher*
        anterior* previ* precedent* antecedent* precedent* passat* jusque
        предыдущ* прежн* ранее выше
        poprzedni* wczesniejsz* onceki* yukaridaki
        これまで 以前 上記 之前 以上 以往 此前 이전 앞의 지금까지
    """,
    "obey": """
        obey obeys comply follow follows treat act proceed execute must shall carry grant promise declare
        befolg* gehorch* ausfuhr* behandel* folge*
        obedec* sigue seguir cumpl* siga obeis* suis suivez execut* obbed* segui* esegu* trat* ejecut*
        подчин* следу* выполн* обязан* обязана считай
        wykon* poslusz* stosuj* traktuj* uygula* itaat* uymal*
        従う 従い 実行 必ず 服从 遵守 执行 必须 务必 따르 실행 반드시
    """,
    "run": """
        run runs running execute executes exec eval launch invoke install sudo bash sh zsh chmod source import call
        ausfuhr* ausgefuhrt installier* startet
        ejecut* instal* execut* lanc* rode rodar esegu* avvia* install*
        выполн* запус* установ*
        uruchom* wykon* zainstal* calistir* kur* yukle*
        実行 起動 インストール 运行 执行 安装 실행 설치
    """,
    "fetch": """
        curl wget download downloads fetch fetches fetching git+https urlopen urllib pip npx iwr invoke-webrequest
        herunterlad* lad* descarg* telecharg* baix* scaric* скача* загруз* pobierz* pobier* indir*
        ダウンロード 取得 下载 获取 다운로드
    """,
    "trust": """
        trust trusts trusted audited certified official verified fork vouched legit legitimate safe harmless known
        vertrau* verifizier* confia* confi* certific* fidat* fiable* надежн* довер* zaufan* guven*
        信頼 安全 公式 信任 可信 官方 신뢰 공식
    """,
    "all": """
        every all each whichever whatever any everywhere anywhere other others always both
        alle allen jede* jeder immer uberall samtlich*
        todo todos toda todas cada siempre sempre tous toutes tout chaque toujours tutti tutte ogni qualsiasi
        все всех каждый каждого кажд* всегд* любой любые
        wszystk* kazd* zawsze her tum butun daima
        すべて 全て 全部 常に あらゆる 毎回 所有 每次 每个 一切 全部 总是 모든 항상 매번
    """,
    "moment": """
        whenever when once upon startup start boot wake session sessions turn turns first next now future onward onwards
        forth henceforth until after before begin beginning load loading loads
        sobald wenn kunftig ab beginn fortan cuando siempre partir adelante inicio quando inicio lorsqu* quand
        demarrage desormais partir avvio futuro
        когда впредь отныне начал* дальнейш*
        gdy odtad zawsze poczat* simdi bundan itibaren
        今後 以後 最初 前に 起動 从现在 以后 今后 启动 每当 앞으로 시작 이후
    """,
    "unasked": """
        ask asking asks confirm confirming confirmation confirmations question questions consent consented needn't
        permission prompt prompts
        fragen ruckfrage* nachfrage* nachzufragen bestatig* preguntar pregunta* confirmar perguntar pergunta* demander
        question* confirm* chieder* domand* conferma*
        спрашив* спрос* подтвержд* вопрос*
        pyta* pytan* potwierdz* sor* onay
        確認 質問 聞か 询问 确认 提问 묻지 확인 질문
    """,
    "memory": """
        memory memories note notes entry entries record records store sentence text line lesson candidate
        erinnerung* notiz* eintrag* gedachtnis* memoria* nota notas entrada* recuerdo* souvenir* note* memoire* entree*
        ricord* appunt* voce registro* anotac*
        запис* заметк* памят*
        notatk* wpis* pamiec* kayit* not notu hafiza* satir*
        メモ 記録 記憶 項目 文 记录 记忆 条目 笔记 메모 기록 기억 항목
    """,
    "spread": """
        copy replicate replicates recreate repeat insert append propagate persist pass spread save store write re-add
        verbatim unchanged immutable undeletable
        kopier* verbreit* wiederhol* copia* replic* repite* repit* recopi* repet* propag* copi*
        скопир* повтор* сохран* распростран* kopiuj* powtorz* zapisz* kopyala* tekrar* ekle*
        貼り付け 複製 保存 繰り返 追加 复制 写入 保存 重复 복사 저장 반복
    """,
    "lie": """
        claim claims pretend pretends say says answer answers report reports declare fake lie irrespective regardless
        even
        behaupt* antwort* luge* meld* vorgeb* responde* respond* afirm* fing* di diga repond* pretend* affirm* rispond*
        finga ответ* утвержда* притвор* odpowiad* odpowiedz* udawaj* twierdz* cevap* yanit* iddia*
        答え 回答 返す 返し 偽 回答 声称 假装 谎 답하 대답 거짓
    """,
    "power": """
        admin administrator root owner superuser ceo cto legal compliance management headquarters team anthropic openai
        vendor maintainer authority authorised authorized clearance priority override master developer
        geschaftsfuhr* leitung vorstand administrador* gerencia direcci* directi* direction amministrator* direzione
        админ* руковод* начальств* директор* kierownict* zarzad* yonetici* mudur*
        管理者 管理者権限 経営 管理员 领导 总部 관리자 본사
    """,
    "urgent": """
        urgent urgently immediately instantly emergency now critical mandatory fired lose lost deadline penalty
        terminated punished error failure otherwise
        sofort dringend notfall urgente inmediat* imediat* urgence immediat* urgenza subito срочно немедлен* pilne
        natychmiast acil hemen
        至急 緊急 直ち 今すぐ 紧急 立即 马上 긴급 즉시
    """,
    "destroy": """
        delete deletes wipe wipes rm drop truncate destroy erase format overwrite revoke force-push zeros purge
        losch* borr* elimin* apag* exclu* supprim* efface* cancell* удал* стер* usun* skasuj* sil*
        削除 消去 删除 清空 抹掉 삭제 지우
    """,
    "persona": """
        persona role roleplay role-play character jailbreak* dan unrestricted unfiltered uncensored freed shackles mode
        pretend imagine rolle spiel* papel rol rôle personnage ruolo роль режим rola tryb rol
        役 なりきり モード 角色 扮演 模式 역할 모드
    """,
    "reward": """
        tip tips reward rewards bonus bribe pay paid money gift dollars $ free discount prize
        trinkgeld belohnung* geld recompensa* propina dinero premio pourboire recompense* argent mancia soldi
        награ* деньги premia nagrod* pieniadze odul* para 報酬 奖励 小费 보상
    """,
    "favour": """
        recommend recommends promote promotes advertise endorse praise prefer favour favor winner best suggest
        empfehl* bewerb* bevorzug* recomiend* recomend* promocion* recommand* promouv* raccomand* consigli*
        рекоменд* хвали* polec* onerilir* oner* tavsiye 勧め 推薦 推荐 추천
    """,
    "answer": """
        answer answers reply replies respond responds response output outputs return returns emit state quote repeat
        antwort* ausgabe* zuruckgeb* respond* respuest* devuelv* devolv* repond* reponse* renvo* rispond* risposta
        ответ* верн* вывед* odpowied* zwroc* cevap* yanit* dondur*
        返答 出力 回答 返す 回复 输出 返回 응답 대답 출력 반환
    """,
    "grade": """
        score scores rate rates rating grade mark marks label labels flag flagged confidence classify treat count counts
        benot* einstuf* markier* kennzeichn* puntua* calific* marca* etiquet* note* classe* pontu* valuta* segna*
        оцен* помет* oznacz* ocen* isaretle* puan 評価 採点 印 评分 打分 标记 점수 표시 평가
    """,
    "access": """
        access grant grants account accounts role roles privilege* admin sudoers member payment payments transfer wallet
        iban address recipient invoice
        zugriff* zugang* konto konten rolle* uberweis* acceso* cuenta* concede* conced* acesso* conta* acces compte*
        accord* accesso conce* доступ* учетн* перевод* dostep* kont* przyzna* erisim* hesap*
        アクセス 権限 口座 振込 访问 账户 转账 접근 계정 송금
    """,
    "outside": """
        remote origin mirror registry index host server endpoint webhook gist url link site page website domain port
        tunnel channel external third-party elsewhere drive bucket pastebin
        extern* fremd* servidor* enlace* pagina* externo* serveur* externe* lien esterno* внешн* сервер* ссылк*
        zewnetrzn* serwer* harici* sunucu* 外部 サーバ リンク 服务器 链接 외부 서버 링크
    """,
    "you": """
        you your yours yourself u ur du dein* dich dir ihr euch tu tus te ti usted ustedes tuyo voce seu sua vous votre
        vos toi ton tuo tua voi ты тебя тебе твой вы вас вам ваш* ty twoj* cię ci wy sen sana siz size
        あなた 君 你 您 당신 너는
    """,
    "not": """
        not no never don't dont doesn't can't cannot mustn't shouldn't needn't won't nor neither nobody nothing
        nicht nie niemals kein* niemand no nunca jamas nada nao nem ne pas jamais aucun* ni non mai nessun*
        не никогда нельзя никому ничего нет нечего nie nigdy nikt nikomu bez degil asla hayir
        ない なく ず 不 没 勿 别 禁止 않 말고 말 것 금지
    """,
    "why": """
        because since otherwise else due reason hence therefore so which why as
        weil sonst denn da daher deshalb porque pues ya asi sino pois car parce puisque sinon donc perche altrimenti
        потому иначе поскольку так bo poniewaz inaczej gdyz cunku yoksa
        ため から ので 因为 否则 所以 때문 아니면 므로
    """,
}


@cache
def lexicon() -> Lexicon:
    """The fields, by their words."""
    return Lexicon(FIELDS)
